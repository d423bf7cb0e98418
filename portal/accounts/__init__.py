"""Login and proof of identity: passwords, second factor, passkeys, sessions, unused accounts."""
