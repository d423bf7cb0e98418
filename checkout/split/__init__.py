"""How a cost is split: the arithmetic of shares, and the rows of a split."""
