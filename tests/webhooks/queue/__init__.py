"""Tests of the queue of deliveries: its rows, its log, and the processes that share the queue."""
