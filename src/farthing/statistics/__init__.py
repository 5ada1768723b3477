"""statistics: say what this package holds."""
