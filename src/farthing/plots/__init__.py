"""Altair charts."""
