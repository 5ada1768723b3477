"""Sparse vector for people: an alert when any of many counts reaches its threshold."""

from farthing.adaptive.monitor.count_series import Series, Watched, thresholds_of, watched
from farthing.adaptive.monitor.monitor import Alert, Look, Monitor
from farthing.adaptive.monitor.monitor_plan import MonitorPlan, plan_monitor

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
