"""Empirical audits: run a mechanism on neighbouring tables and try to contradict its claim.

audit           the search, with a bound that holds at a stated confidence
AuditReport     what it found, and what it could have found
WorkerLost      a sampling process ended early
"""

from farthing.auditing.audit import AuditReport, audit
from farthing.auditing.output_samples import WorkerLost

__all__ = ["AuditReport", "WorkerLost", "audit"]
