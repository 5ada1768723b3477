"""matrix: say what this package holds."""
