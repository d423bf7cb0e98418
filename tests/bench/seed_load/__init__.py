"""Many orders, written with COPY, for the benchmark and for looking at the pages over a large database."""
