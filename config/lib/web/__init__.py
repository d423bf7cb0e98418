"""HTTP tools that all apps share: bodies, addresses, cookies, origins, request ids, error pages."""
