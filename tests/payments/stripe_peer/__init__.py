"""A strict double of Stripe's API for tests of an adapter. It keeps state and answers HTTP requests."""
