"""Query sessions, monitors and holdouts of a study: opened, resumed, charged once."""
