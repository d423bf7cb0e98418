"""Tests of checkouts' row locks, and of the clock that is read after a lock is acquired."""
