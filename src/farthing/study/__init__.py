"""The face people meet: a study of a dataset, its plans, and what was released."""

from farthing.study.plan import Plan
from farthing.study.planned import PlannedStatistic
from farthing.study.released import Release
from farthing.study.study import Study

__all__ = ["Plan", "PlannedStatistic", "Release", "Study"]
