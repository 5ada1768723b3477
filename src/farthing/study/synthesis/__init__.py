"""synthesis: say what this package holds."""
