"""The portal's pages: each view reads the request, makes one call, and shows the result."""
