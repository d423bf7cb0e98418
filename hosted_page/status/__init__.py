"""The sentences that describe the current state of an order or a share to each viewer."""
