"""http: say what this package holds."""
