"""Quick starts for a merchant's developer, one program per language: token, order, capture, refund.

Rule docs.quick_start.
"""
