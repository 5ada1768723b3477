"""The composition theorems people compare with, one in each file, each with its source and its brute-force test.

    basic                     epsilons add, deltas add
    advanced                  Dwork, Rothblum & Vadhan 2010
    pure_advanced             k epsilon^2 / 2 + epsilon sqrt(2 k ln(1/delta))
    kov_homogeneous           Kairouz, Oh & Viswanath 2015, closed form, equal charges
    kov_heterogeneous         the same for any charges
    kov_exact                 the optimum for equal charges
    mv_enumeration            Murtagh & Vadhan 2018, the optimum for any few charges
    mv_dynamic_programme      the same to within eta, in polynomial time
    renyi_of_pure             Renyi divergence of pure mechanisms
    renyi_conversion          Renyi to (epsilon, delta), and renyi_conversion_improved
    renyi_composition         both together, at the best order
    zcdp_of_pure              pure DP is concentrated DP
    zcdp_conversion           concentrated to (epsilon, delta), and zcdp_conversion_improved
    hardness                  counting partitions by calling an accountant
    side_by_side              all of them at one delta: `table`

Every function that returns a float returns an upper bound on the optimum, rounded up; `Bounds` hold it.
"""

from farthing.accounting.theorems.basic_and_advanced import (
    advanced_composition,
    basic_composition,
    pure_advanced_composition,
)
from farthing.accounting.theorems.hardness import (
    PartitionCount,
    count_equal_product_partitions,
    exact_optimal_composition,
)
from farthing.accounting.theorems.kairouz_oh_viswanath import (
    kov_exact_homogeneous,
    kov_heterogeneous_bound,
    kov_homogeneous_bound,
)
from farthing.accounting.theorems.murtagh_vadhan import mv_dynamic_programme, mv_enumeration
from farthing.accounting.theorems.renyi_dp import (
    epsilon_of_renyi,
    epsilon_of_renyi_improved,
    renyi_composition,
    renyi_of_pure_composition,
)
from farthing.accounting.theorems.theorem_table import Row, table
from farthing.accounting.theorems.zero_concentrated_dp import (
    epsilon_of_zcdp,
    epsilon_of_zcdp_improved,
    zcdp_of_pure,
)

__all__ = [
    "PartitionCount",
    "Row",
    "advanced_composition",
    "basic_composition",
    "count_equal_product_partitions",
    "epsilon_of_renyi",
    "epsilon_of_renyi_improved",
    "epsilon_of_zcdp",
    "epsilon_of_zcdp_improved",
    "exact_optimal_composition",
    "kov_exact_homogeneous",
    "kov_heterogeneous_bound",
    "kov_homogeneous_bound",
    "mv_dynamic_programme",
    "mv_enumeration",
    "pure_advanced_composition",
    "renyi_composition",
    "renyi_of_pure_composition",
    "table",
    "zcdp_of_pure",
]
