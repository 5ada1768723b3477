"""Lines through rows: normal equations with noise, their intervals, and what is expected of them before."""
