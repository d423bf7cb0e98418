"""Records about an order: log lines, spans, error reports and metrics, and the data that they must not contain."""
