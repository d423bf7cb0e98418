"""Log lines, spans, error reports and metrics about an order, and the data that they must not contain."""
