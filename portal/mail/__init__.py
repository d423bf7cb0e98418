"""E-mails to a merchant's people: the outbox, and the events that are worth an e-mail."""
