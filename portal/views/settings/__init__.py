"""The merchant's settings: the name and the colour with a preview, the logo, links, and the time to pay."""
