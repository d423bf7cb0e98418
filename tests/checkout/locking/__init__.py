"""What holds under a lock, and whose clock decides."""
