"""The part of the OpenAPI document about the merchant API of checkouts."""
