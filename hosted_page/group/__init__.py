"""Paying together: the mates' links, invitations and pages."""
