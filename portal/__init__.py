"""The portal: a merchant's people and API keys, and the pages on which people manage everything."""
