"""Splitting a cost: the arithmetic of shares and items, and the rows that store a split."""
