"""Releases as HTML."""
