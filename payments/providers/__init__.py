"""The adapters behind the port in payments/provider.py."""
