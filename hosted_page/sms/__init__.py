"""SMS messages: the port and its senders, the outbox, and the limits."""
