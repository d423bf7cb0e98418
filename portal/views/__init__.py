"""The portal's pages: read the request, one call, show the result."""
