"""The adaptive world: budgets and readings that hold when epsilons are chosen after seeing earlier answers.

    BasicFilter          plain sums; exact, and the best for a handful of charges
    FullyAdaptiveFilter  advanced composition (Whitehouse et al. 2023)
    RenyiFilter          Renyi divergences at one order (Feldman & Zrnic 2021); prices sampled Gaussian noise
    ClockFilter          one Gaussian clock; the tightest for charges that are small beside the budget
    StreamFilter         a clock that knows how far losses reach; for charges of many sizes, not small beside the budget
    Odometer             no budget: a running epsilon that holds at every time

A filter refuses, an odometer reports. See the page on adaptive accounting for when each is needed.
"""

from farthing.accounting.filters.basic_filter import BasicFilter, Filter
from farthing.accounting.filters.clock_filter import ClockFilter
from farthing.accounting.filters.fully_adaptive_filter import FullyAdaptiveFilter
from farthing.accounting.filters.odometer import Odometer
from farthing.accounting.filters.renyi_filter import RenyiFilter
from farthing.accounting.filters.stream_filter import StreamFilter

__all__ = ["BasicFilter", "ClockFilter", "Filter", "FullyAdaptiveFilter", "Odometer", "RenyiFilter", "StreamFilter"]
