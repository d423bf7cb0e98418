"""The receivers that merchants copy, hostile receivers, and the connections to receivers."""
