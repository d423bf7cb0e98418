"""How people log in and prove who they are: passwords, second factor, sessions, unused accounts."""
