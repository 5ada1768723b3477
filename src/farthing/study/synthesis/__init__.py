"""Synthetic tables of a study: offers, the table, questions to it, its quality and report."""
