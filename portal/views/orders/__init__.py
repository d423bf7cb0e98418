"""Pages about orders: those that were split, and the customer data and the notes of one order."""
