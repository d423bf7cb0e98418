"""Mails to a merchant's people: the outbox, and what is worth one."""
