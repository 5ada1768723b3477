"""The face people meet: a study of a dataset, its plans, what was released, and synthetic tables."""

from farthing.study.discovery_plan import DiscoveryPlan
from farthing.study.plan import Plan
from farthing.study.plan_statistic import PlannedStatistic
from farthing.study.release import Release
from farthing.study.sql.result_table import ResultTable
from farthing.study.sql.sql_plan import SqlPlan, SqlRelease
from farthing.study.study import Study
from farthing.study.synthesis.synthetic_quality import MarginalQuality, Quality
from farthing.study.synthesis.synthetic_query import SyntheticAnswer
from farthing.study.synthesis.synthetic_table import SynthesisOffer, Synthetic

__all__ = [
    "DiscoveryPlan",
    "MarginalQuality",
    "Plan",
    "PlannedStatistic",
    "Quality",
    "Release",
    "ResultTable",
    "SqlPlan",
    "SqlRelease",
    "Study",
    "SynthesisOffer",
    "Synthetic",
    "SyntheticAnswer",
]
