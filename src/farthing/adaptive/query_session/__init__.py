"""Online private multiplicative weights.

plan, split_budget     prices and promises before anything is spent; what a split budget would give
rounds                 questions watched on both sides until the first that is far
start, weights, masks  the hypothesis: where it begins, how it moves, what it says
session               the stream
"""

from farthing.adaptive.query_session.multiplicative_weights import Answer, QuerySession, Step
from farthing.adaptive.query_session.session_plan import QuerySessionPlan, SplitBudget, plan_query_session

__all__ = ["Answer", "QuerySession", "QuerySessionPlan", "SplitBudget", "Step", "plan_query_session"]
