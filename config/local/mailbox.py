"""The page /mail, which exists only in `local`. It shows sent emails, which are files in EMAIL_FILE_PATH there."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_GET

MAXIMUM = 200  # the maximum number of emails in the list
_END = re.compile(rb"^-{79}\n", re.MULTILINE)  # the line that Django's file backend writes after each email
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Mail:
    """An email to show. `name` is its path under /mail."""

    name: str
    to: str
    sender: str
    subject: str
    sent_at: datetime
    text: str


@require_GET
def list_emails(request: HttpRequest) -> HttpResponse:
    """Show the emails, newest first."""
    return render(request, "local/mails.html", {"mails": newest_first()[:MAXIMUM]})


@require_GET
def show_email(request: HttpRequest, name: str) -> HttpResponse:
    """Show one email, with its links."""
    mail = next((mail for mail in newest_first() if mail.name == name), None)
    if mail is None:
        raise Http404
    return render(request, "local/mail.html", {"mail": mail})


def newest_first() -> list[Mail]:
    """Return the emails from the newest files, newest first.

    If emails have the same second, they are in the order in which they were written. Only the MAXIMUM newest
    files are read. This is enough to fill the list, because each file has at least one email.
    """
    files = sorted(Path(settings.EMAIL_FILE_PATH).glob("*.log"), key=lambda file: file.stat().st_mtime_ns)
    mails = [mail for file in files[-MAXIMUM:] for mail in _mails_of(file)]
    return sorted(mails, key=lambda mail: mail.sent_at)[::-1]


def _mails_of(file: Path) -> list[Mail]:
    parts = [part for part in _END.split(file.read_bytes()) if part.strip()]
    return [_read_mail(f"{file.stem}-{number}", part) for number, part in enumerate(parts, start=1)]


def _read_mail(name: str, written: bytes) -> Mail:
    message = message_from_bytes(written, EmailMessage, policy=policy.default)
    plain = message.get_body(("plain",))
    return Mail(
        name=name,
        to=str(message["To"] or ""),
        sender=str(message["From"] or ""),
        subject=str(message["Subject"] or ""),
        sent_at=parsedate_to_datetime(message["Date"]) if message["Date"] else _NEVER,
        text=plain.get_content() if plain else "",
    )


urlpatterns = [path("", list_emails, name="local_mails"), path("/<str:name>", show_email, name="local_mail")]
