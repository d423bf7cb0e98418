"""What the people of a split order do with its shares."""
