"""The merchant's settings: what customers see, with a preview, the logo, and how long orders wait."""
