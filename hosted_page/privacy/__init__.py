"""A person's data: what we know of them, and how it goes, when they ask or when its time is over."""
