"""Which payments' books to read at the provider, and when: after a message, and each night."""
