"""The meeting place: how the apps become one service."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
