"""The environment variables of the service: their table, how they are read, and the checks of their values.

`table.py` describes every variable: its type, bounds, default and meaning. `make variables` writes
`.env.example` and the table in docs/operate.md from it.
"""
