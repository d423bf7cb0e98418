"""What it may cost to read whatever a stranger sends."""
