"""The sandbox bank as a peer on a network: what a real provider is, slow, broken off or down."""
