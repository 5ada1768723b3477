"""The reusable holdout: adaptive questions about rows that must not be overfitted.

Holdout           Thresholdout, with a budget of corrections that stops
HoldoutAnswer     a mean, its error on the population, and whether it was corrected
HoldoutGuarantee  what is promised, with constants
HoldoutPlan       the same before any row is looked at
"""

from farthing.adaptive.holdout.holdout import Holdout, HoldoutAnswer
from farthing.adaptive.holdout.holdout_plan import HoldoutPlan
from farthing.adaptive.holdout.population_guarantee import HoldoutGuarantee

__all__ = ["Holdout", "HoldoutAnswer", "HoldoutGuarantee", "HoldoutPlan"]
