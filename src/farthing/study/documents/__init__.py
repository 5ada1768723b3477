"""documents: say what this package holds."""
