"""Text messages: the port to the carrier and its senders, the outbox, and the limits."""
