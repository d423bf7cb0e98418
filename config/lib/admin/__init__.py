"""The parts of every admin page: read-only lists, columns, panels, actions that ask for confirmation."""
