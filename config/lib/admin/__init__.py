"""What every page of the admin is made of: read-only lists, columns, panels, actions that ask first."""
