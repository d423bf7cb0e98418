"""Static files outside local: compressed, and named by their contents, so that browsers may keep them for good."""

from typing import Any

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    """A file that `make static` did not gather keeps its plain name: a page without styles is better than none."""

    manifest_strict = False

    def hashed_name(self, name: str, *details: Any, **more: Any) -> str:
        try:
            hashed: str = super().hashed_name(name, *details, **more)
        except ValueError:
            return name
        return hashed
