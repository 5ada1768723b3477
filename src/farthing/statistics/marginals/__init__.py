"""marginals: say what this package holds."""
