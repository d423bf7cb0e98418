"""On every path, the service refuses a body whose Content-Length is too large before any code reads the body."""

from typing import Any

import pytest
from django.conf import settings
from django.http.multipartparser import MultiPartParser
from django.test import Client
from django.utils import translation

from config import body_limits
from tests.config import addresses
from tests.refusals import refused

LARGE = str(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)


class Unread:
    """A body that makes the test fail when it is read."""

    def read(self, *_: int) -> bytes:
        raise AssertionError("Somebody reads it.")

    readline = read


@pytest.mark.rule("api.body_size")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("content_type", ["application/json", "multipart/form-data; boundary=x", "", "x"])
@pytest.mark.parametrize(
    "path",
    [
        "/pay/phone",
        "/accounts/login/",
        "/livez",
        "/nothing",
        "/oauth/token",
        "/oauth/revoke",
        "/api/merchant/v1/checkouts",
    ],
)
def test_a_body_that_is_too_large_is_refused_unread(path: str, content_type: str, method: str) -> None:
    environ: dict[str, Any] = {
        "CONTENT_LENGTH": LARGE,
        "CONTENT_TYPE": content_type,
        "wsgi.input": Unread(),
    }
    answer: Any = Client().generic(method, path, **environ)
    assert (answer.status_code, answer["Connection"]) == (413, "close")
    assert answer["X-Request-Id"]
    if path.startswith("/api/"):
        refused(answer, 413, "payload_too_large")
    elif path.startswith("/oauth/"):
        assert answer.json()["error"] == "invalid_request" and answer.json()["error_description"]
    elif path.startswith("/pay"):
        assert "<h1>This is too long</h1>" in answer.content.decode()
    else:
        assert answer.content.decode() == body_limits.TOO_LARGE


@pytest.mark.rule("api.body_size")
@pytest.mark.parametrize(
    "path", ["/pay/phone", "/oauth/token", "/oauth/revoke", "/accounts/login/", "/livez", "/api/docs"]
)
def test_a_form_has_a_smaller_limit(path: str) -> None:
    headers: dict[str, Any] = {"CONTENT_LENGTH": str(body_limits.LARGEST_FORM + 1), "wsgi.input": Unread()}
    assert Client().post(path, **headers).status_code == 413


@pytest.mark.parametrize("length", ["", "x", "-1", "0", str(body_limits.LARGEST_FORM)])
def test_any_other_content_length_is_accepted(length: str) -> None:
    headers: dict[str, Any] = {"CONTENT_LENGTH": length}
    assert Client().get("/livez", **headers).status_code == 200


PART = b'--x\r\nContent-Disposition: form-data; name="a"%s\r\n\r\n\r\n'
ENDED = b"--x--\r\n"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/pay/phone", "/pay/language", "/accounts/login/", "/nothing"])
@pytest.mark.parametrize(
    "body", [PART % b'; filename="a"' + ENDED, PART % b"" * 300 + ENDED], ids=["file", "parts"]
)
def test_a_form_with_files_is_refused_before_it_is_parsed(
    path: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_apart(*_: Any) -> None:
        raise AssertionError("Somebody takes it apart.")

    monkeypatch.setattr(MultiPartParser, "parse", taken_apart)
    answer: Any = Client().post(path, body, content_type="multipart/form-data; boundary=x")
    told = "<h1>You can’t send files here</h1>" if path.startswith("/pay") else body_limits.NO_FILES
    assert answer.status_code == 415 and told in answer.content.decode()


@pytest.mark.rule("api.body_size", "page.language", "secret.csp")
@pytest.mark.parametrize("language", [code for code, _ in settings.LANGUAGES])
@pytest.mark.parametrize(
    ("status", "heading", "length"),
    [(413, "This is too long", LARGE), (415, "You can’t send files here", "")],
)
@pytest.mark.parametrize("path", ["/pay/phone", "/pay/g/x/take", "/bank/card/x"])
def test_a_payers_body_is_refused_on_a_page_in_their_language(
    path: str, status: int, heading: str, length: str, language: str
) -> None:
    environ: dict[str, Any] = {"CONTENT_LENGTH": length} if length else {}
    body, kind = PART % b'; filename="a"' + ENDED, "multipart/form-data; boundary=x"
    answer: Any = Client(headers={"accept-language": language}).generic("POST", path, body, kind, **environ)
    page = answer.content.decode()
    assert (answer.status_code, answer["Content-Language"]) == (status, language)
    with translation.override(language):
        assert f"<h1>{translation.gettext(heading)}</h1>" in page and f'<html lang="{language}">' in page
    assert (heading in page) is (language == "en-gb")
    assert "form-action" in answer["Content-Security-Policy"] and answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.django_db
def test_a_form_is_read_as_utf_8_whatever_charset_it_names() -> None:
    """A caller cannot choose the decoder of a body, because some decoders raise errors and some are slow."""
    form = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in {"language": "fr", "next": "/pay/é"}.items()
    )
    kinds = {
        "multipart/form-data; boundary=x": 303,
        "multipart/form-data; boundary=x; charset=punycode": 400,
        f'multipart/form-data; boundary=x; c="{";" * 7_900}': 400,
        "application/x-www-form-urlencoded; charset=idna": 400,
        "text/plain; CHARSET*0=unde; charset*1=fined": 400,
    }
    for kind, status in kinds.items():
        ask = addresses.asking("POST", "/pay/language?a=b", f"{form}--x--\r\n", **{"Content-Type": kind})
        assert ask().status_code == status, kind


@pytest.mark.django_db
@pytest.mark.rule("brand.logo_upload", "api.body_size")
@pytest.mark.parametrize(
    ("path", "size", "status"),
    [
        ("/portal/settings/save", 300_000, 302),
        ("/portal/settings/save", settings.LARGEST_UPLOAD + 1, 413),
        ("/portal/settings/save/", 300_000, 413),
        ("/portal/settings/logo/remove", 300_000, 413),
        ("/api/merchant/v1/checkouts", 300_000, 413),
        ("/pay/phone", 300_000, 413),
    ],
)
def test_only_a_logo_upload_can_be_larger_and_is_parsed_only_for_a_signed_in_person(
    path: str, size: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_apart(*_: Any) -> None:
        raise AssertionError("Somebody takes it apart.")

    monkeypatch.setattr(MultiPartParser, "parse", taken_apart)
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    begin = '--x\r\nContent-Disposition: form-data; name="logo"; filename="a"\r\n\r\n'
    answer = addresses.asking("POST", path, begin + "a" * (size - len(begin)), **headers)()
    assert answer.status_code == status
    if status == 302:
        assert answer["Location"].startswith("/accounts/login/")
