"""What every request meets before a route does: origin checks, limits, error answers, the access log."""
