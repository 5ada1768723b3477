"""Tables of every few columns at once: their queries, the strategy that measures them, their outputs."""
