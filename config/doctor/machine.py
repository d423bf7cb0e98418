"""Checks of this machine: its disks, folders and certificates, and values that only an operator can judge."""

import os
import shutil
import ssl
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from config.doctor import Finding
from config.monitoring import certificates as public_certificates

LEAST_FREE = 0.05  # the fraction of a disk that must be free
CERTIFICATE_DAYS = 14


def disks() -> Iterator[Finding]:
    """Check whether there is free space on the disks that have the service's files."""
    for folder in sorted({str(settings.BASE_DIR), tempfile.gettempdir(), *map(str, _written_folders())}):
        if os.path.isdir(folder):
            usage = shutil.disk_usage(folder)
            if usage.free < LEAST_FREE * usage.total:
                yield Finding(f"The disk of {folder} has only {usage.free // 2**20} MiB free. Make space.")


def folders() -> Iterator[Finding]:
    """Check that this process can write to the folders that it needs, and that `make static` has run."""
    for folder in _written_folders():
        if not folder.is_dir():
            yield Finding(f"The folder {folder} does not exist. Create it, or mount its disk.")
        elif not os.access(folder, os.W_OK):
            yield Finding(f"This user cannot write to {folder}. Change the folder's owner or mode.")
    if settings.STATIC_ROOT and not (Path(settings.STATIC_ROOT) / "staticfiles.json").exists():
        yield Finding("The static files are missing. Run make static.")


def _written_folders() -> list[Path]:
    return [Path(settings.ERASURES_FILE).parent] if settings.ERASURES_FILE else []


def certificates() -> Iterator[Finding]:
    """Check that each public host answers with a valid certificate that does not expire soon."""
    for host, port in public_certificates.public_hosts():
        yield from _certificate(host, port)


def _certificate(host: str, port: int) -> Iterator[Finding]:
    try:
        expires = public_certificates.read_expiry(host, port)
    except ssl.SSLCertVerificationError as error:
        yield Finding(
            f"Browsers refuse the certificate of {host}: {error.verify_message}. Install a valid one."
        )
        return
    except OSError as error:
        yield Finding(
            f"{host}:{port} does not answer from this machine ({type(error).__name__}). "
            "Check the proxy and the name in DNS.",
            is_warning=True,
        )
        return
    days = (expires - time.time()) / 86_400
    if days < CERTIFICATE_DAYS:
        yield Finding(f"The certificate of {host} expires in {days:.0f} days. Check its renewal.")


def hints() -> Iterator[Finding]:
    """Warn about values that are allowed but rarely intended."""
    if settings.LOCAL:
        return
    if not settings.TRUSTED_PROXY_COUNT:
        yield Finding(
            "TRUSTED_PROXY_COUNT is 0. If a proxy terminates TLS, set it to the number of proxies. "
            "Otherwise, each page redirects to itself.",
            is_warning=True,
        )
    if not settings.OPERATORS:
        yield Finding("OPERATORS is empty, so no one gets mails about discrepancies.", is_warning=True)
    if not settings.METRICS_TOKEN:
        yield Finding("METRICS_TOKEN is not set, so /metrics answers no one.", is_warning=True)
    if settings.DEFAULT_FROM_EMAIL.endswith("@localhost"):
        yield Finding(
            "DEFAULT_FROM_EMAIL is at localhost, so mails are likely to be refused.", is_warning=True
        )
