"""How people log in and prove who they are: passwords, second factor, passkeys, sessions, unused accounts."""
