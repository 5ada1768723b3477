"""Query sessions, monitors and holdouts of a study: opened, resumed, charged once."""

from farthing.curator.session_records import RoundId

__all__ = ["RoundId"]
