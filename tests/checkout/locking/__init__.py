"""What is true under a lock, and by which clock."""
