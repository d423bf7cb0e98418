"""The merchant's settings: what payers see of them, with a preview, the logo, and how long orders wait."""
