"""Studies as text: study.toml, JSON for the server, Python code, stored answers."""
