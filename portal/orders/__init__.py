"""The portal's view of checkouts: the search, the details and the timeline."""
