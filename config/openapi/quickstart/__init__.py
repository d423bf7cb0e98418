"""The first five minutes of a merchant's developer, one program a language: token, order, capture, refund."""
