"""Tests of operations in doubt, from the first call without an answer until the order ends."""
