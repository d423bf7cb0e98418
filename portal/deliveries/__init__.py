"""The delivery log as people read it."""
