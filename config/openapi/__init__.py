"""The API described: the OpenAPI document, generated from the code, and the readable page over it."""
