"""The world whose provider is Stripe's peer: settings of its processes, who pays there, and what goes wrong."""
