"""A sale: hundreds of buyers in a minute, each from an address of their own, against the whole service as processes."""
