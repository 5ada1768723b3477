"""The composition theorems people compare with, by their authors, each with its source and its brute-force test.

    basic_and_advanced     epsilons and deltas add; Dwork, Rothblum & Vadhan 2010; its form for pure charges
    kairouz_oh_viswanath   2015: closed forms for equal and for any charges, and the optimum for equal ones
    murtagh_vadhan         2018: the optimum for any few charges, and to within eta in polynomial time
    renyi_dp               Renyi divergence of pure mechanisms, and its conversion at the best order
    zero_concentrated_dp   pure DP is concentrated DP, and its conversion
    hardness               counting partitions by calling an accountant
    partition_chain        the links of that proof, with charges as small as one likes, and the way back
    theorem_table          all of them at one delta: `table`; those that a price is shown under: `COMPARED`

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
    kov_homogeneous_as_printed,
    kov_homogeneous_bound,
)
from farthing.accounting.theorems.murtagh_vadhan import mv_dynamic_programme, mv_enumeration
from farthing.accounting.theorems.partition_chain import (
    TPartitionCount,
    count_t_partitions,
    delta_witnesses,
    optimal_composition_by_counting,
    root_below,
    sum_partition,
)
from farthing.accounting.theorems.renyi_dp import (
    epsilon_of_renyi,
    epsilon_of_renyi_improved,
    renyi_composition,
    renyi_of_pure_composition,
)
from farthing.accounting.theorems.theorem_table import BLACK_BOX, COMPARED, Row, Theorem, table
from farthing.accounting.theorems.zero_concentrated_dp import (
    epsilon_of_zcdp,
    epsilon_of_zcdp_improved,
    zcdp_of_pure,
)

__all__ = [
    "BLACK_BOX",
    "COMPARED",
    "PartitionCount",
    "Row",
    "TPartitionCount",
    "Theorem",
    "advanced_composition",
    "basic_composition",
    "count_equal_product_partitions",
    "count_t_partitions",
    "delta_witnesses",
    "epsilon_of_renyi",
    "epsilon_of_renyi_improved",
    "epsilon_of_zcdp",
    "epsilon_of_zcdp_improved",
    "exact_optimal_composition",
    "kov_exact_homogeneous",
    "kov_heterogeneous_bound",
    "kov_homogeneous_as_printed",
    "kov_homogeneous_bound",
    "mv_dynamic_programme",
    "mv_enumeration",
    "optimal_composition_by_counting",
    "pure_advanced_composition",
    "renyi_composition",
    "renyi_of_pure_composition",
    "root_below",
    "sum_partition",
    "table",
    "zcdp_of_pure",
]
