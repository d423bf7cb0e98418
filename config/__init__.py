"""What makes one service of the apps: settings, URLs, Celery, start-up checks, health checks and metrics."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
