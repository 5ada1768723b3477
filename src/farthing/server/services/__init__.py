"""services: say what this package holds."""
