"""Sparse vector for people: tell me when any of these counts reaches its threshold."""

from farthing.adaptive.monitor.monitor import Alert, Look, Monitor
from farthing.adaptive.monitor.plan import MonitorPlan, plan_monitor
from farthing.adaptive.monitor.series import Series, Watched, thresholds_of, watched

__all__ = [
    "Alert",
    "Look",
    "Monitor",
    "MonitorPlan",
    "Series",
    "Watched",
    "plan_monitor",
    "thresholds_of",
    "watched",
]
