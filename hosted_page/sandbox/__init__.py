"""The helper API: what a customer and the time do, for tests without a browser."""
