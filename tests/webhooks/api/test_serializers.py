"""Invalid fields of a subscription are refused through the API. Unusual valid values are accepted."""

import re
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.conftest import Api
from tests.refusals import MISSING, nothing_moves, refused
from tests.webhooks.api.story import HOOK, PATH, refuse, subscribe

MALFORMED = [
    MISSING,
    None,
    5,
    True,
    [],
    {},
    "",
    "   ",
    "hook",
    "//shop.example/hook",
    "ftp://127.0.0.1/hook",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "http://",
    "http:///hook",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:abc/",
    "http://user@127.0.0.1/",
    "http://user:password@127.0.0.1/",
    "http://127.0.0.1\\@evil.example/",
    "http://127.0.0.1/#fragment",
    "http://127.0.0.1/a b",
    "http://127.0.0.1/\r\nX: y",
    "http://127.0.0.1/\x00",
    "http://127.0.0.1/" + "a" * 5_000,
    "http://shop.example/hook",
]
NOT_PUBLIC = [
    HOOK,
    "https://localhost/hook",
    "https://localhost./hook",
    "https://127.0.0.1/hook",
    "https://127.0.0.1./hook",
    "https://127.1/hook",
    "https://0177.0.0.1/hook",
    "https://2130706433/hook",
    "https://0x7f.1/hook",
    "https://0x7f000001/hook",
    "https://１２７.0.0.1/hook",
    "https://0.0.0.0/hook",
    "https://[::1]/hook",
    "https://[::]/hook",
    "https://[::ffff:10.0.0.1]/hook",
    "https://[64:ff9b::a00:1]/hook",
    "https://[2606:4700::1111]/hook",
    "https://10.0.0.1/hook",
    "https://192.168.1.1/hook",
    "https://169.254.169.254/latest/meta-data",
    "https://100.64.0.1/hook",
    "https://8.8.8.8/hook",
    "https://metadata.google.internal/",
    "https://shop.localhost/",
    "https://printer.local/",
    "https://intranet/hook",
    "https://shop.example:22/hook",
    "https://shop.example:0/hook",
    "https://%31%32%37.0.0.1/hook",
    "https://nobody.invalid/hook",
    "https://☃.invalid/hook",
    "https://١.invalid/hook",
    "https://xn--a.invalid/hook",
]


@pytest.fixture
def hosted(settings: Settings) -> None:
    """Forbid loopback addresses for webhooks, as in the sandbox and in production."""
    settings.WEBHOOK_LOOPBACK = False


class TestUrl:
    @pytest.mark.parametrize("url", MALFORMED, ids=lambda url: repr(url)[:30])
    def test_that_is_invalid_is_refused(self, api: Api, url: Any) -> None:
        refuse(api, "url", url=url)

    @pytest.mark.rule("target.public")
    @pytest.mark.usefixtures("hosted")
    @pytest.mark.parametrize("url", NOT_PUBLIC, ids=lambda url: repr(url)[:30])
    def test_that_is_not_public_is_refused(self, api: Api, url: str) -> None:
        with nothing_moves():
            error = refused(subscribe(api, url=url), 422, "validation_failed", "url")
        assert not re.search(r"\d+\.\d+\.\d+", error["details"][0]["message"])

    @pytest.mark.rule("api.all_fields")
    def test_is_named_together_with_every_other_invalid_field(self, api: Api) -> None:
        answer = subscribe(api, url="http://shop.example/x", event_types=["x"])
        details = answer.json()["error"]["details"]
        assert [detail["param"] for detail in details] == ["url", "event_types[0]"]


class TestEventTypes:
    @pytest.mark.rule("subscription.types")
    @pytest.mark.parametrize(
        "event_types",
        [
            MISSING,
            None,
            [],
            "*",
            "checkout.voided",
            5,
            {"0": "*"},
            True,
        ],
        ids=lambda types: repr(types)[:20],
    )
    def test_that_are_not_a_list_are_refused(self, api: Api, event_types: Any) -> None:
        refuse(api, "event_types", event_types=event_types)

    @pytest.mark.rule("subscription.types")
    @pytest.mark.parametrize(
        "name",
        [
            "checkout.captured",
            "webhook.test",
            "Checkout.Voided",
            "checkout.*",
            "**",
            "",
            " *",
            "*\x00",
            None,
            5,
            ["*"],
            {},
        ],
        ids=repr,
    )
    def test_with_an_unknown_name_are_refused_at_its_place(self, api: Api, name: Any) -> None:
        refuse(api, "event_types[1]", event_types=["checkout.voided", name])

    @pytest.mark.rule("subscription.types")
    @pytest.mark.parametrize(
        ("name", "question"),
        [
            ("checkout.authorised", " Did you mean checkout.authorized?"),
            ("Checkout.Voided", " Did you mean checkout.voided?"),
            ("marketing_opted_in", " Did you mean marketing.opted_in?"),
            ("checkout.captured", ""),
            ("checkout.refunded", ""),
        ],
    )
    def test_with_an_unknown_name_get_the_name_that_is_probably_meant(
        self, api: Api, name: str, question: str
    ) -> None:
        message = subscribe(api, event_types=[name]).json()["error"]["details"][0]["message"]
        assert message == (
            f"Must be one of *, checkout.authorized, checkout.voided, marketing.opted_in.{question}"
        )

    def test_of_a_thousand_names_are_refused(self, api: Api) -> None:
        refuse(api, "event_types", event_types=["checkout.voided"] * 1_000)

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (["*", "checkout.voided"], ["*", "checkout.voided"]),
            (["checkout.voided", "checkout.voided"], ["checkout.voided"]),
            (
                ["marketing.opted_in", "checkout.authorized", "marketing.opted_in"],
                ["marketing.opted_in", "checkout.authorized"],
            ),
        ],
    )
    def test_are_kept_once_each(self, api: Api, given: list[str], kept: list[str]) -> None:
        answer = subscribe(api, event_types=given, colour="green")
        assert answer.status_code == 201 and answer.json()["data"]["event_types"] == kept
        assert api.get(PATH).json()["data"]["event_types"] == kept
