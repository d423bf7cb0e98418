"""Deployment: the proxy, the connection pooler, systemd units, the environment file, the health check, the back-up.

Rule environment.backup.
"""
