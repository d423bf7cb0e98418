"""How the apps become one service: settings, URLs, Celery, start-up checks, health, metrics."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
