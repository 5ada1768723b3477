"""Answers to questions that depend on earlier answers.

query_session      a stream of counting questions, of which only the surprising ones cost
discovery          ranges of columns, and how many rows a unit has, where nobody knows them
holdout            a holdout set that can be asked again and again without being overfitted
monitor            an alert when any of many counts reaches its threshold
running_series     counts and running totals of a table that grows
synthesis          synthetic tables: select, measure, fit, and again
prior_releases     what earlier releases say about the cells of a domain, for free
session_generalisation   what the answers of a query session say about the population
session_journal    the memory of a session: opened once, every round begun once
"""

from farthing.adaptive.holdout import Holdout, HoldoutAnswer, HoldoutGuarantee, HoldoutPlan
from farthing.adaptive.monitor import Alert, Look, Monitor, MonitorPlan, Series, plan_monitor
from farthing.adaptive.prior_releases import KnownTable, known_tables
from farthing.adaptive.query_session import (
    Answer,
    PublicSession,
    QuerySession,
    QuerySessionPlan,
    plan_guaranteed_session,
    plan_query_session,
)
from farthing.adaptive.running_series import RunningSeries, RunningSeriesPlan, SeriesStep, plan_running_series
from farthing.adaptive.session_generalisation import PopulationErrors, population_errors
from farthing.adaptive.session_journal import MemoryJournal
from farthing.adaptive.synthesis import SynthesisPlan, SyntheticModel, synthesis_plan

# Names from before "query session", for those who use them; deprecated, they go with 1.0.
AnswererPlan = QuerySessionPlan
OnlineAnswerer = QuerySession
plan_answerer = plan_query_session

__all__ = [
    "Alert",
    "Answer",
    "AnswererPlan",
    "Holdout",
    "HoldoutAnswer",
    "HoldoutGuarantee",
    "HoldoutPlan",
    "KnownTable",
    "Look",
    "MemoryJournal",
    "Monitor",
    "MonitorPlan",
    "OnlineAnswerer",
    "PopulationErrors",
    "PublicSession",
    "QuerySession",
    "QuerySessionPlan",
    "RunningSeries",
    "RunningSeriesPlan",
    "Series",
    "SeriesStep",
    "SynthesisPlan",
    "SyntheticModel",
    "known_tables",
    "plan_answerer",
    "plan_guaranteed_session",
    "plan_monitor",
    "plan_query_session",
    "plan_running_series",
    "population_errors",
    "synthesis_plan",
]
