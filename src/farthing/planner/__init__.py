"""What-if: dividing a budget over the measurements of a design. Public facts only, never rows.

planning_problem    a design, a budget, and what was asked of it: `Problem`, `Requirement`
allocation          `allocate`, and `fit` for the least budget: `Allocation`
theorem_prices      the same noises under the composition theorems: `TheoremPrices`
slot_facts          what a slot's events say: sensitivities, widths, the strongest noise
design_arrays       the design as arrays, and every slot's best noise at one order and one price of privacy
allocation_search   the composed cost, estimated; price, order and weights brought to agree
requirements        errors that must not be exceeded
offers              what would do instead, where nothing does
"""

from farthing.accounting.theorems import COMPARED
from farthing.planner.allocation import Allocation, Usage, allocate, fit
from farthing.planner.planning_problem import Problem, Requirement
from farthing.planner.theorem_prices import TheoremPrices, adaptivity_sentence, own_epsilon, proven_cost

Price = TheoremPrices  # deprecated: the name before 0.1, importable until 1.0

__all__ = [
    "COMPARED",
    "Allocation",
    "Price",
    "Problem",
    "Requirement",
    "TheoremPrices",
    "Usage",
    "adaptivity_sentence",
    "allocate",
    "fit",
    "own_epsilon",
    "proven_cost",
]
