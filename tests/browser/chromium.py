"""The tests' browser: Debian's headless Chromium, to save CPU, or the browser that CHROMIUM names."""

import os
import shutil

from playwright.sync_api import Browser, Playwright

QUIET = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
)


def start(playwright: Playwright, *more: str) -> Browser:
    """Start the browser with these additional options.

    If no browser is installed, fail and say how to install one.
    """
    found = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell")
    assert found, (
        "The browser tests need Debian's chromium-headless-shell, or CHROMIUM set to a browser of yours."
    )
    return playwright.chromium.launch(executable_path=found, args=[*QUIET.split(), *more])
