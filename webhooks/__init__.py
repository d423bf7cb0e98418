"""How a merchant is told something: the outbox, and the queue of deliveries that sends it."""
