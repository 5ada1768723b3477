"""Medians and other quantiles: their measurements, their intervals, their outputs."""
