"""E-mails to a merchant's people: the outbox, and the events that cause an e-mail."""
