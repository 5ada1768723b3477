"""Answers to questions that depend on earlier answers: online weights, synthetic tables, holdouts, monitors."""
