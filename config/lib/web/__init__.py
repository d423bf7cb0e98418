"""HTTP below the level of any app: bodies, addresses, cookies, origins, request ids, error pages."""
