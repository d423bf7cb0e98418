"""Alert rules and a dashboard, each generated from one table by `make monitoring`."""
