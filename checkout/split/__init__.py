"""How a cost is split: the arithmetic of shares and of items, and the rows of a split."""
