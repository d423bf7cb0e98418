"""The merchant's settings: what customers see of them, with a preview, the logo, and how long orders wait."""
