"""Deployment: proxy, connection pooler, systemd units, Kubernetes manifests, environment file, health check, back-up.

Rule environment.backup.
"""
