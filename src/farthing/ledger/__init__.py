"""Append-only charges, budgets, recovery: what was spent, kept so that nobody can overdraw it."""
