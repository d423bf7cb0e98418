"""The sandbox bank, reached over HTTP like a real provider, when it is slow, resets connections or is down."""
