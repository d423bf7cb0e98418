"""What each process reports about itself: metrics, traces, and whether its threads still run."""
