"""The face people meet: a study of a dataset, its plans, what was released, and synthetic tables."""

from farthing.study.plan import Plan
from farthing.study.planned import PlannedStatistic
from farthing.study.quality import MarginalQuality, Quality
from farthing.study.released import Release
from farthing.study.study import Study
from farthing.study.synthetic import SynthesisOffer, Synthetic
from farthing.study.synthetic_query import SyntheticAnswer

__all__ = [
    "MarginalQuality",
    "Plan",
    "PlannedStatistic",
    "Quality",
    "Release",
    "Study",
    "SynthesisOffer",
    "Synthetic",
    "SyntheticAnswer",
]
