"""What a process does about itself: metrics, traces, signs of life."""
