"""What is recorded about an order: log lines, spans, errors and figures, and the data that none of them contain."""
