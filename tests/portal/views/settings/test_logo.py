"""The upload of a logo: who may do it, and what the service does with the file."""

from typing import Any

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http.multipartparser import MultiPartParser
from django.test import Client

from hosted_page.logo import decoding, storage
from payments.models import Logo, Merchant
from portal.mail import outbox
from portal.models import AuditEntry, Role
from tests.hosted_page.logo import files
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.rule("brand.logo_upload")]
PATH = "/portal/settings/save"


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.ADMIN, "amy@acme.example"))


def upload(client: Client, content: bytes, name: str = "logo.png", kind: str = "image/png") -> Any:
    return stage.save(client, logo=SimpleUploadedFile(name, content, kind))


def remove(client: Client) -> Any:
    return client.post("/portal/settings/logo/remove")


class TestUpload:
    def test_is_shown_audited_and_mailed_to_the_owners(self, client: Client, acme: Merchant) -> None:
        stage.person(acme, Role.OWNER, "lea@acme.example")
        assert upload(client, files.logo())["Location"] == "/portal/settings"
        acme.refresh_from_db()
        shown = storage.logo_of(acme)
        page = client.get("/portal/settings").content.decode()
        assert shown is not None and shown.mark in page and "Your logo is shown from now on." in page
        assert AuditEntry.objects.get().action == "logo_changed"
        outbox.send_due()
        (told,) = mail.outbox
        assert told.to == ["lea@acme.example"] and "logo" in told.subject

    def test_is_redrawn_with_any_file_name_or_type(self, client: Client) -> None:
        sent = files.logo() + b"<script>alert(1)</script>"
        upload(client, sent, "../../x.svg", "image/svg+xml")
        kept = Logo.objects.get()
        assert b"script" not in bytes(kept.mark) + bytes(kept.card)

    def test_replaces_the_previous_logo(self, client: Client) -> None:
        upload(client, files.logo("red"))
        before = Logo.objects.get()
        upload(client, files.logo("black"))
        after = Logo.objects.get()
        assert after.version > before.version and bytes(after.mark) != bytes(before.mark)

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"<svg/>", "Use a PNG or JPEG of at most 256 KB."),
            (files.logo() + b"\0" * decoding.MAX_BYTES, "Use a PNG or JPEG of at most 256 KB."),
            (files.logo()[:300], "This picture is damaged. Save it again as a PNG or JPEG."),
            (files.claiming(50_000, 50_000), "Use a picture of 32 to 1,024 pixels a side."),
        ],
        ids=["svg", "large", "damaged", "bomb"],
    )
    def test_that_is_not_a_logo_is_refused_on_the_page(
        self, client: Client, content: bytes, said: str
    ) -> None:
        refused = upload(client, content)
        assert refused.status_code == 422 and said in refused.content.decode()
        assert not Logo.objects.exists() and not AuditEntry.objects.exists()

    def test_without_a_file_keeps_the_current_logo(self, client: Client) -> None:
        upload(client, files.logo())
        for answer in (stage.save(client), stage.save(client, logo=""), upload(client, b"")):
            assert answer.status_code in (302, 422) and Logo.objects.exists()

    def test_that_is_far_too_large_is_refused_unread(self, client: Client) -> None:
        refused = upload(client, b"\0" * 600_000)
        assert (refused.status_code, refused["Connection"]) == (413, "close")
        assert "PNG or JPEG of at most 256 KB" in refused.content.decode()

    @pytest.mark.parametrize("body", [b"", b"--x", b"--x\r\n\r\n", b"\0" * 1000, b"--x\r\n" * 400])
    def test_that_is_not_a_form_is_refused(self, client: Client, body: bytes) -> None:
        answer = client.post(PATH, body, content_type="multipart/form-data; boundary=x")
        assert answer.status_code in (302, 400, 422) and not Logo.objects.exists()


class TestRemoval:
    def test_is_audited_once(self, client: Client) -> None:
        upload(client, files.logo())
        for _ in range(2):
            assert remove(client)["Location"] == "/portal/settings"
        actions = AuditEntry.objects.order_by("created_at").values_list("action", flat=True)
        assert list(actions) == ["logo_changed", "logo_removed"] and not Logo.objects.exists()


class TestAccess:
    @pytest.mark.parametrize("role", [Role.DEVELOPER, Role.SUPPORT, Role.VIEWER])
    def test_other_roles_are_refused(
        self, acme: Merchant, role: Role, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = stage.browser(stage.person(acme, role))
        nobody_parses(monkeypatch)
        assert upload(other, files.logo()).status_code == 403
        assert remove(other).status_code == 403

    def test_without_a_login_redirects_to_the_login_without_parsing_the_file(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nobody_parses(monkeypatch)
        stranger = Client(enforce_csrf_checks=True)
        assert "/accounts/login/" in upload(stranger, files.logo())["Location"]

    def test_a_form_from_another_site_is_refused(self, acme: Merchant) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = stage.browser(stage.person(acme, Role.OWNER)).cookies
        for path in (PATH, "/portal/settings/logo/remove"):
            assert strict.post(path, {"logo": SimpleUploadedFile("a.png", files.logo())}).status_code in (
                403,
                415,
            )
        assert not Logo.objects.exists()
        page = strict.get("/portal/settings").content.decode()
        token = page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
        form = stage.FORM | {"logo": SimpleUploadedFile("a.png", files.logo()), "csrfmiddlewaretoken": token}
        assert strict.post(PATH, form).status_code == 302 and Logo.objects.exists()

    def test_a_logo_applies_only_to_the_persons_merchant(self, client: Client, rival: Merchant) -> None:
        upload(client, files.logo())
        rival.refresh_from_db()
        assert storage.logo_of(rival) is None

    def test_a_file_at_another_path_is_refused(self, client: Client) -> None:
        form = {"logo": SimpleUploadedFile("a.png", files.logo())}
        for path in ("/portal/settings", "/portal/settings/logo/remove", f"{PATH}/"):
            assert client.post(path, form).status_code == 415, path


def nobody_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken_apart(*_: Any) -> None:
        raise AssertionError("Somebody takes it apart.")

    monkeypatch.setattr(MultiPartParser, "parse", taken_apart)
