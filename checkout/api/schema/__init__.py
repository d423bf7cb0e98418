"""What the OpenAPI document says about the merchant API of checkouts."""
