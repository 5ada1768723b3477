"""What routes call: plans, releases, query sessions and ledger pages, over studies and the store."""
