"""What the server remembers besides the ledger: people, tokens, declarations, drafts, jobs.

Store          the database: `with store.begin() as connection:` is one transaction
store_tables   its tables
"""

from farthing.server.store.store_engine import Store, now

__all__ = ["Store", "now"]
