"""Static files, protected by digests. Outside local, they are compressed, and their names contain a content hash.

A page states the digest of each script and style sheet that it uses (subresource integrity). A browser does
not load a file whose bytes differ from this release. Rule card_page.integrity.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from whitenoise.storage import CompressedManifestStaticFilesStorage

HTMX = "django_htmx/htmx-2.min.js"


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    """Storage that uses a file's plain name if `make static` did not collect the file. It does not raise an error.

    A page without styles is better than no page.
    """

    manifest_strict = False

    def hashed_name(self, name: str, *details: Any, **more: Any) -> str:
        try:
            hashed: str = super().hashed_name(name, *details, **more)
        except ValueError:
            return name
        return hashed


@cache
def script(name: str) -> SafeString:
    """Return the HTML element that loads one of our scripts, with its integrity digest."""
    return format_html('<script src="{}"{} defer></script>', static(name), _integrity_attribute(name))


@cache
def stylesheet(name: str) -> SafeString:
    """Return the HTML element that loads one of our style sheets, with its integrity digest."""
    return format_html('<link rel="stylesheet" href="{}"{}>', static(name), _integrity_attribute(name))


def _integrity_attribute(name: str) -> SafeString:
    """Return the `integrity` attribute, or "" for a missing file, which browsers cannot load anyway."""
    content = delivered_bytes(name)
    return SafeString("") if content is None else format_html(' integrity="{}"', integrity(content))


def integrity(content: bytes) -> str:
    """Return a file's digest in the format for subresource integrity."""
    # With a longer digest, the bill's page would be larger than the 60 KiB that tests/browser/test_light.py
    # allows.
    return f"sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}"


def delivered_bytes(name: str) -> bytes | None:
    """Return the bytes of a static file as browsers receive it, or None if there is no such file.

    `make static` changes the addresses in style sheets, so the bytes of a style sheet differ from its source.
    """
    path = _source_path(name) if settings.STATIC_ROOT is None else _collected_path(name)
    return path.read_bytes() if path is not None and path.is_file() else None


def source_bytes(name: str) -> bytes | None:
    """Return the source bytes of a static file, which `make static` copies, or None if there is no such file."""
    path = _source_path(name)
    return path.read_bytes() if path is not None else None


def _source_path(name: str) -> Path | None:
    found = finders.find(name)
    return Path(found) if found else None


def _collected_path(name: str) -> Path:
    storage = cast(HashedStaticFiles, staticfiles_storage)
    return Path(storage.path(storage.stored_name(name)))
