"""A strict double of Stripe's API: a process with state, over HTTP, for tests of an adapter."""
