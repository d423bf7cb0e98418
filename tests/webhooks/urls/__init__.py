"""The addresses to which webhooks can be sent."""
