"""The top of a record's page in the admin: what the record is, its state, and a link to the next step."""
