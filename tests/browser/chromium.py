"""The browser for tests: Debian's headless Chromium, which saves CPU time, or the browser that CHROMIUM names."""

import os
import shutil

from playwright.sync_api import Browser, BrowserType, Playwright

QUIET = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
)


def start(playwright: Playwright, *more: str) -> Browser:
    """Start the browser with these additional options.

    If no browser is installed, fail with an explanation of how to install one.
    """
    return launch(playwright.chromium, *more)


def launch(kind: BrowserType, *more: str) -> Browser:
    """Start another browser of this kind in the same way as `start`."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell")
    assert found, (
        "The browser tests need Debian's chromium-headless-shell, or CHROMIUM set to a browser of yours."
    )
    return kind.launch(executable_path=found, args=[*QUIET.split(), *more])
