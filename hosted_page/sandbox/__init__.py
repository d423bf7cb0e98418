"""The helper API: actions of customers and the passage of time, for tests without a browser."""
