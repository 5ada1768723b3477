"""The one door between private rows and a ledger: check, charge, run, record, answer.

Curator     asks on behalf of somebody; nothing else joins rows with a ledger
Answered    noisy whole numbers, and the receipt of the charge that paid for them
unit_of     whom a dataset protects, as a ledger keeps it
"""

from farthing.curator.curator import Answered, Curator
from farthing.curator.units import unit_of

__all__ = ["Answered", "Curator", "unit_of"]
