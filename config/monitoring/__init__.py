"""Metrics and traces of the service, the alert rules for Prometheus, and a dashboard for Grafana.

Rule environment.alerts.
"""
