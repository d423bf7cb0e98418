"""The canary: whether FIELD_KEYS and LOOKUP_KEY are the keys with which the database was written."""

from cryptography.fernet import InvalidToken
from django.apps import apps

from config.lib import crypto

WORD = "canary"


def reason_of_wrong_key() -> str:
    """Return a sentence that names the wrong key, "" if all are right."""
    try:
        # Celery imports this module before the models.
        planted = apps.get_model("portal", "Canary")._default_manager.first()
    except InvalidToken:
        return "FIELD_KEYS are not those that the database was written with."
    if planted is None:
        return "The database lacks what migrate writes. Run manage.py migrate."
    if not crypto.is_keyed_digest(planted.digest, WORD, WORD):
        return (
            "LOOKUP_KEY (SECRET_KEY, where it is not set) is not the one that the database was written with."
            " Add that one to LOOKUP_KEY_FALLBACKS, and run manage.py rotate_keys."
        )
    return ""


def plant_again() -> None:
    """Write the digest under LOOKUP_KEY; after that, a process without this key does not start."""
    apps.get_model("portal", "Canary")._default_manager.update(digest=crypto.keyed_digest(WORD, WORD))
