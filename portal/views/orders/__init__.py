"""Pages about orders: the split orders, and the customer data and the notes of one order."""
