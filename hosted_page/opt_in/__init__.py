"""The box for the merchant's marketing: its wording, the consents that payers give, and its links."""
