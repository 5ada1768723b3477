"""The one door between private rows and a ledger: check, charge, run, record, answer.

Curator     asks on behalf of somebody; nothing else joins rows with a ledger
Answered    noisy whole numbers, and the receipt of the charge that paid for them
stored_answer  what a ledger holds for a request
unit_of     whom a dataset protects, as a ledger keeps it
"""

from farthing.curator.curator import Answered, Curator, stored_answer
from farthing.curator.payers import unit_of

__all__ = ["Answered", "Curator", "stored_answer", "unit_of"]
