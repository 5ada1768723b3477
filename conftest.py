"""What holds for every test and every example, wherever they stand: see tests/draws.py."""

pytest_plugins = ["draws"]
