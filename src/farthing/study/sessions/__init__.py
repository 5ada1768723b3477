"""sessions: say what this package holds."""
