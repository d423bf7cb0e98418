"""An explicit-state model of money after the capture: `make model` checks it and prints its counterexamples."""
