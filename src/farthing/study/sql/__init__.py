"""SQL to a plan: a statement is read, translated into statistics, and its released numbers come back as its rows."""
