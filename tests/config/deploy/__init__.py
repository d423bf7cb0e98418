"""The deployment package: image, systemd units, proxy and connection pooler."""
