"""What to read at the provider, and when: payments' books after a message and each night, and the balance."""
