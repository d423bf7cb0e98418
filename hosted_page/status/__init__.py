"""What is true of an order or of a share now, in words for people."""
