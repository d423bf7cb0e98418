"""The checklist's cases run by the sandbox: a real order goes through the merchant's own integration."""
