"""Who a customer is before any code has proven it: how numbers are read, and what a merchant has said."""
