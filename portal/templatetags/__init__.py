"""How the portal writes money, moments and durations."""
