"""What an installation has beside our processes: the proxy, the connection pooler, systemd's units, the probe."""
