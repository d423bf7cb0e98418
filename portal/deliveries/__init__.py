"""The pages of the delivery log: the search and the details of a delivery."""
