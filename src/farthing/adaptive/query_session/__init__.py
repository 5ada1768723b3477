"""Query sessions: a stream of counting questions of which only the surprising ones cost; multiplicative weights.

session_plan            prices and promises before anything is spent, beside those of a split budget
session_rounds          questions watched on both sides until the first that is far off
initial_measurements    what the start measures, and at which price
initial_histogram       what was measured at the start, as weights of all cells
wavelets                a basis in which the coarse shape of a table is a few numbers
multiplicative_weights  one weight for each cell, and how it moves when a question was far off
query_session           the stream itself
public_session          the same without privacy, for teaching
"""

from farthing.adaptive.query_session.public_session import PublicSession
from farthing.adaptive.query_session.query_session import Answer, QuerySession, Step
from farthing.adaptive.query_session.session_plan import (
    QuerySessionPlan,
    SplitBudget,
    plan_guaranteed_session,
    plan_query_session,
)
from farthing.statistics.cells.cell_axes import Axis

__all__ = [
    "Answer",
    "Axis",
    "PublicSession",
    "QuerySession",
    "QuerySessionPlan",
    "SplitBudget",
    "Step",
    "plan_guaranteed_session",
    "plan_query_session",
]
