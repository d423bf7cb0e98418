"""What templates of the admin ask of the operators' pages."""
