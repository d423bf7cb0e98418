"""The delivery log for people: search and detail."""
