"""The merchant's people and keys, and the pages from which they run everything."""
