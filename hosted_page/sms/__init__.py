"""SMS messages: the port and its senders, the outbox, and how many there may be."""
