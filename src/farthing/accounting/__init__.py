"""What a list of events costs together: composition, theorems, filters, calibration.

compose                 the optimum, as a proven interval
calibrate               the least noise that fits a budget
group_privacy, sampled_approx_dp, sampled_without_replacement
Region                  the error rates that tests can reach, as an exact polygon
simulate                answers of one mechanism made from those of another, or the test that shows they cannot be
theorems                every bound people compare with
filters                 the account when parameters depend on earlier answers
CompositionGame, tally  the adaptive composition game: choose charges after seeing answers, and watch a filter hold
"""

from farthing.accounting import filters, theorems
from farthing.accounting.algorithm_choice import EngineChoice
from farthing.accounting.amplification import group_privacy, sampled_approx_dp, sampled_without_replacement
from farthing.accounting.calibration import Calibration, calibrate
from farthing.accounting.compose import Composition, compose
from farthing.accounting.composition_game import CompositionGame, FixedCharges
from farthing.accounting.game_strategies import at_once, compete, planned, pressing, steady, tally
from farthing.accounting.regions import Region
from farthing.accounting.simulation import Simulation, Witness, randomized_response_simulation, simulate
from farthing.accounting.tradeoff_functions import TradeoffFunction

__all__ = [
    "Calibration",
    "Composition",
    "CompositionGame",
    "EngineChoice",
    "FixedCharges",
    "Region",
    "Simulation",
    "TradeoffFunction",
    "Witness",
    "at_once",
    "calibrate",
    "compete",
    "compose",
    "filters",
    "group_privacy",
    "planned",
    "pressing",
    "randomized_response_simulation",
    "sampled_approx_dp",
    "sampled_without_replacement",
    "simulate",
    "steady",
    "tally",
    "theorems",
]
