"""What a process does about itself: measuring, and giving signs of life."""
