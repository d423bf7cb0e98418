"""What others did to our payments at the provider: inquiries, returned refunds, bookings."""
