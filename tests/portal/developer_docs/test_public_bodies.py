"""The service compresses only bodies that are the same for every caller."""

import gzip
from typing import Any

import pytest
from django.test import Client

from checkout.models import Checkout
from payments.models import Merchant
from portal import keys
from portal.developer_docs import public_bodies
from portal.models import Role
from tests.conftest import Api
from tests.portal import stage

PUBLIC = ("/api/schema", "/api/docs", "/api/docs.md", "/api/docs/errors.md", "/llms.txt")


def get(path: str, client: Client | None = None, *, accepts: str = "br;q=1.0, gzip") -> Any:
    return (client or Client()).get(path, headers={"accept-encoding": accepts})


class TestPublicBodies:
    @pytest.mark.rule("docs.compressed")
    @pytest.mark.parametrize("path", PUBLIC)
    def test_are_compressed_for_callers_who_accept_gzip(self, path: str) -> None:
        plain, compressed = get(path, accepts=""), get(path)
        assert "Content-Encoding" not in plain.headers and compressed["Content-Encoding"] == "gzip"
        assert gzip.decompress(compressed.content) == plain.content
        assert len(compressed.content) < len(plain.content) / 2
        for answer in (plain, compressed):
            assert "Accept-Encoding" in answer["Vary"].split(", ")
            assert int(answer["Content-Length"]) == len(answer.content)
            assert answer["Cache-Control"] == "public, max-age=300"

    @pytest.mark.parametrize(
        ("header", "is_accepted"),
        [
            *(("gzip", True), ("GZIP", True), ("x-gzip", True), ("deflate, gzip;q=1.0, *;q=0.5", True)),
            *(("br,gzip ; q=0.001", True), ("", False), ("identity", False), ("gzip;q=0", False)),
            *(("gzip;q=0.000", False), ("gzipped", False), ("*", False), ("gzip;q=x", False)),
        ],
    )
    def test_follow_the_header(self, header: str, is_accepted: bool) -> None:
        assert public_bodies.accepts_gzip(header) == is_accepted


@pytest.mark.django_db
class TestOtherBodies:
    @pytest.mark.rule("docs.compressed")
    def test_are_never_compressed(self, acme: Merchant, api: Api, unpaid: Checkout) -> None:
        keys.create_client(acme, "Till")
        member = stage.browser(stage.person(acme, Role.OWNER))
        answers = [
            get("/api/docs", member),
            get("/portal/checkouts?query=secret", member),
            get(f"/pay?id={unpaid.pk}"),
            get("/accounts/login/"),
            api.get("checkouts", HTTP_ACCEPT_ENCODING="gzip"),
        ]
        assert [answer.status_code for answer in answers] == [200] * 5
        assert [answer.headers.get("Content-Encoding") for answer in answers] == [None] * 5
