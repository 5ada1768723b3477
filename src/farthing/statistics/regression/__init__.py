"""regression: say what this package holds."""
