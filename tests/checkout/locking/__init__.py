"""Row locks of checkouts, and the clock that is read once a lock is held."""
