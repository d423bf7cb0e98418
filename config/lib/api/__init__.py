"""The merchant API's own kinds of field, view and description. They know neither merchants nor money."""
