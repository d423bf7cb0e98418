"""What tells of an order: log lines, spans, errors, figures, and what must stand in none of them."""
