"""The effects of memories on later runs: the ledger, the estimates, and the report for an owner."""
