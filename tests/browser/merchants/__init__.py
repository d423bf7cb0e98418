"""The portal's pages in a browser."""
