"""What every adapter of the port must do: the same tests against each, through the desk of its provider."""
