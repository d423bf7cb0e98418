"""Which payments' books are to be read at the provider, and when: after a message, and each night."""
