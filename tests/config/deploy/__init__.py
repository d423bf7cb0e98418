"""The package: image, units, proxy and pooler, read and run."""
