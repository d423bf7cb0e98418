"""Facts that each process reports about itself: metrics, traces, whether its threads still run."""
