"""The canary. It shows whether this environment wrote the database with the current keys."""

from cryptography.fernet import InvalidToken
from django.apps import apps
from django.conf import settings

from config.lib import crypto

WORD = "canary"


def database_mismatch() -> str:
    """Return a sentence about the wrong key or environment, with its remedy, or "" if both are right."""
    try:
        # The model is not imported at the top, because Celery imports this module before the models are loaded.
        canary = apps.get_model("portal", "Canary")._default_manager.first()
    except InvalidToken:
        return "FIELD_KEYS are not those that the database was written with."
    if canary is None:
        return "The database lacks what migrate writes. Run manage.py migrate."
    if not crypto.is_keyed_digest(canary.digest, WORD, WORD):
        return (
            "LOOKUP_KEY (SECRET_KEY, where it is not set) is not the one that the database was written with."
            " Add that one to LOOKUP_KEY_FALLBACKS, and run manage.py rotate_keys."
        )
    if canary.environment != settings.ENVIRONMENT:
        return f"The database was written by ENVIRONMENT={canary.environment}. Use another database."
    return ""


def rewrite_canary() -> None:
    """Write the canary's digest with the current LOOKUP_KEY.

    After that, a process without this key does not start.
    """
    apps.get_model("portal", "Canary")._default_manager.update(digest=crypto.keyed_digest(WORD, WORD))
