"""Row locks of checkouts, and the clock that decides after a lock."""
