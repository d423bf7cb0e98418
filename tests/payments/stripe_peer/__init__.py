"""A strict test double of Stripe's API, called the peer. It stores objects and answers HTTP requests."""
