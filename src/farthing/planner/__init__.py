"""What-if: dividing a budget over the measurements of a design. Public facts only, never rows.

problem        a design, a budget, and what was asked of it: `Problem`, `Requirement`
allocation     `allocate`, and `fit` for the least budget: `Allocation`
price          the same plan under the composition theorems: `Price`
model, losses  the design as arrays, and what noises cost as floats
order          the composed cost, estimated, and the Renyi order that decides it
shares         every slot's best noise at one order and one price of privacy
search         price, order and weights brought to agree
polish         the last percent where slots are few
requirements   errors that must not be exceeded
"""

from farthing.planner.allocation import Admits, Allocation, allocate, fit
from farthing.planner.planning_problem import Problem, Requirement
from farthing.planner.theorem_prices import Price, own_epsilon

__all__ = ["Admits", "Allocation", "Price", "Problem", "Requirement", "allocate", "fit", "own_epsilon"]
