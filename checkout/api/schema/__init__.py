"""What the OpenAPI document says of the merchant API of checkouts."""
