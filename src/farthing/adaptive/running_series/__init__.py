"""Continual counting for people: counts and running totals of a table that grows, for one price."""

from farthing.adaptive.running_series.running_series import RunningSeries, SeriesStep
from farthing.adaptive.running_series.series_plan import RunningSeriesPlan, plan_running_series
from farthing.adaptive.running_series.stream_strategy import StreamStrategy, stream_strategy

__all__ = [
    "RunningSeries",
    "RunningSeriesPlan",
    "SeriesStep",
    "StreamStrategy",
    "plan_running_series",
    "stream_strategy",
]
