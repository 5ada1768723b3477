"""reports: say what this package holds."""
