"""How the portal writes money, moments and percentages."""
