"""Row locks of checkouts, and the clock that is read after the lock is acquired."""
