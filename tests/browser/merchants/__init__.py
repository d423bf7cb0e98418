"""The portal's pages, as a merchant's people read them."""
