"""Events for merchants: the outbox, and the queue of deliveries that sends them."""
