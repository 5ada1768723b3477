"""What a list of events costs together."""
