"""Checks the API's document with three third-party linters: `python -m tests.config.openapi.linters`."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# The sandbox's API document contains the whole production document, and also the helper calls.
ENVIRONMENT = {
    "ENVIRONMENT": "sandbox",
    "SUPPORT_EMAIL": "support@checkout.example",
    **dict.fromkeys(("PROVIDER", "SMS_SENDER", "STRIPE_SECRET_KEY", "STRIPE_PUBLISHABLE_KEY"), ""),
}


def main() -> int:
    """Run the linters, which print their findings; return how many linters found errors or warnings."""
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "openapi.json")
        document.write_text(_document())
        return sum(subprocess.run(call, check=False, cwd=HERE).returncode != 0 for call in _calls(document))


def _document() -> str:
    os.environ.update(ENVIRONMENT, DJANGO_SETTINGS_MODULE="config.settings")
    import django

    django.setup()
    from config.openapi import schema

    return json.dumps(schema.document())


def _calls(document: Path) -> list[list[str]]:
    binaries = HERE / "node_modules/.bin"
    return [
        [sys.executable, "-m", "openapi_spec_validator", str(document)],
        [str(binaries / "redocly"), "lint", "--max-problems=20", "--config=redocly.yaml", str(document)],
        [str(binaries / "spectral"), "lint", "--quiet", "--fail-severity=hint", str(document)],
    ]


if __name__ == "__main__":
    sys.exit(main())
