"""quantiles: say what this package holds."""
