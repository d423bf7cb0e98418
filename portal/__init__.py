"""The portal: a merchant's people and keys, and the pages on which they manage everything."""
