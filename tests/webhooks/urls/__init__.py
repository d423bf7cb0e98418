"""Tests of the addresses to which webhooks can be sent."""
