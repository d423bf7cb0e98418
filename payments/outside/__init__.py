"""What others did to our payments at the provider: asked about, told apart, booked."""
