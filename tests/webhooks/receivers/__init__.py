"""The receivers that merchants copy, hostile receivers, and connections to receivers."""
