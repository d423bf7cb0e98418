"""The emails of a local run, which /mail shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.core.mail.backends.filebased import EmailBackend
from django.test import Client
from pytest_django.fixtures import Settings

from config import settings as written
from config.local import mailbox

pytestmark = pytest.mark.django_db
PRODUCTION = {
    "ENVIRONMENT": "sandbox",
    "BASE_URL": "https://checkout.example",
    "PROVIDER": "",
    "SMS_SENDER": "",
}
RESOLVE = """
import django; django.setup()
from django.urls import Resolver404, resolve
try: resolve("/mail")
except Resolver404: print("not there")
"""


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    settings.EMAIL_FILE_PATH = tmp_path / "mail"
    return tmp_path / "mail"


def mail(subject: str, text: str) -> EmailMessage:
    return EmailMessage(subject, text, "us@checkout.example", ["lea@acme.example"])


def send(subject: str, text: str, folder: Path) -> None:
    EmailBackend(file_path=str(folder)).send_messages([mail(subject, text)])


def test_is_empty_before_the_first_mail(client: Client) -> None:
    assert "No mails yet" in client.get("/mail").content.decode()


def test_lists_at_most_the_maximum_number_of_mails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "MAXIMUM", 2)
    backends = [EmailBackend(file_path=str(folder)) for _ in range(3)]
    for number, backend in enumerate(backends):
        backend.send_messages([mail(f"Mail {number}", "text")])
    assert len(mailbox.newest_first()) == 2


def test_lists_the_newest_first(client: Client, folder: Path) -> None:
    written: set[Path] = set()
    # All backends exist at the same time, so each of them writes its own file.
    backends = [EmailBackend(file_path=str(folder)) for _ in range(3)]
    for number, backend in enumerate(backends):
        backend.send_messages([mail(f"Mail {number}", "text")])
        (new,) = set(folder.iterdir()) - written
        # The file system can give the same time to files that are written within a few milliseconds.
        os.utime(new, (number, number))
        written.add(new)
    shown = client.get("/mail").context["mails"]
    assert {mail.subject for mail in shown} == {"Mail 0", "Mail 1", "Mail 2"}
    assert [mail.subject for mail in shown] == ["Mail 2", "Mail 1", "Mail 0"]


def test_shows_one_with_its_links_to_follow_and_nothing_as_html(client: Client, folder: Path) -> None:
    send("Köln & <b>", "Go to https://checkout.example/a?b=1&c=2\n\n<script>x</script> é", folder)
    (read,) = client.get("/mail").context["mails"]
    page = client.get(f"/mail/{read.name}").content.decode()
    assert 'href="https://checkout.example/a?b=1&amp;c=2"' in page
    assert "<script>x" not in page and "é" in page and "Köln &amp; &lt;b&gt;" in page


def test_reads_the_text_of_a_mail_in_parts_and_each_mail_of_a_file(client: Client, folder: Path) -> None:
    one = EmailMultiAlternatives("One", "plain", "us@checkout.example", ["a@acme.example"])
    one.attach_alternative("<p>rich</p>", "text/html")
    two = EmailMessage("Two", "-" * 40, "us@checkout.example", ["b@acme.example"])
    EmailBackend(file_path=str(folder)).send_messages([one, two])
    mails = {mail.subject: mail.text.strip() for mail in client.get("/mail").context["mails"]}
    assert mails == {"One": "plain", "Two": "-" * 40}


@pytest.mark.parametrize("name", ["nothing", "..%2F..%2Fsandbox.json", "20260101-000000-1.log"])
def test_other_paths_are_a_404(client: Client, folder: Path, name: str) -> None:
    send("Mail", "text", folder)
    assert client.get(f"/mail/{name}").status_code == 404


@pytest.mark.long
def test_exists_only_in_local_mode() -> None:
    variables = dict(os.environ) | PRODUCTION | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    for absent in ("PROVIDER", "SMS_SENDER", "FAIL_POINTS"):
        variables.pop(absent, None)
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE],
        env=variables,
        cwd=written.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "not there"
