"""The top of a record’s own page: what the record is, its state, and the next step, with links to where it is done."""
