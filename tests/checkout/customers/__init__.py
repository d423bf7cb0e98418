"""What is known of customers before any code."""
