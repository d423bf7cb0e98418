"""A merchant can register valid URLs, and cannot register any of the invalid spellings that we know of."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.lib.web import http
from tests.webhooks.receivers.receiving import Names
from tests.webhooks.urls import forbidden
from webhooks import targets


class TestCheckUrl:
    @pytest.mark.parametrize(
        ("url", "normal"),
        [
            ("https://shop.example.com/hooks", "https://shop.example.com/hooks"),
            ("https://shop.example.com", "https://shop.example.com"),
            ("HTTPS://Shop.Example.COM:443/a?b=1&c=%2F", "https://shop.example.com/a?b=1&c=/"),
            ("https://shop.example.com:8443/", "https://shop.example.com:8443/"),
            ("https://shop.example.com:４４３/", "https://shop.example.com/"),
            ("https://shop.example.com./hooks", "https://shop.example.com/hooks"),
            ("https://shop。example．com/hooks", "https://shop.example.com/hooks"),
            ("https://ｓｈｏｐ.example.com/hooks", "https://shop.example.com/hooks"),
            ("https://bücher.example.com/ä", "https://xn--bcher-kva.example.com/%C3%A4"),
            ("https://xn--bcher-kva.example.com/", "https://xn--bcher-kva.example.com/"),
            ("https://127.0.0.1.nip.io/", "https://127.0.0.1.nip.io/"),
            ("https://3com.example/", "https://3com.example/"),
            ("https://localhost.example.com/", "https://localhost.example.com/"),
            ("https://shop.example.com/a/../b", "https://shop.example.com/b"),
            ("https://shop.example.com/me@home/50%25", "https://shop.example.com/me@home/50%25"),
        ],
    )
    def test_normalises_a_good_url(self, url: str, normal: str) -> None:
        assert targets.check_url(url, allow_loopback=False) == normal
        assert targets.check_url(normal, allow_loopback=False) == normal

    @pytest.mark.rule("target.public")
    def test_refuses_each_bad_spelling_without_repeating_it(self) -> None:
        for url in forbidden.BAD_URLS:
            try:
                taken = targets.check_url(url, allow_loopback=False)
            except targets.TargetRefused as refused:
                assert "127.0" not in str(refused), url
            else:
                pytest.fail(f"{url!r} was taken as {taken}")

    @pytest.mark.parametrize(
        ("url", "sentence"),
        [
            ("https://sh%6fp.example.com/", "an escaped character in its host name"),
            ("https://user@shop.example.com/", "must not contain a user name"),
            ("https://10.0.0.1/", "must have a host name, not an IP address"),
            ("https://[2606:4700::1]/", "must have a host name, not an IP address"),
            ("https://shop.localhost/", "publicly reachable address"),
            ("https://metadata.google.internal/", "publicly reachable address"),
            ("https://intranet/", "a full DNS name"),
            ("http://shop.example.com/", "must start with https://"),
            ("https://shop.example.com:22/", "port must be 443, or 1024 or higher"),
            ("https://shop.example.com/#x", "without a fragment"),
            (r"https://shop.example.com\x/", "a backslash"),
            ("https://shop.example.com/" + "a" * 2024, "at most 2048 characters"),
        ],
    )
    def test_explains_the_error(self, url: str, sentence: str) -> None:
        with pytest.raises(targets.TargetRefused, match=re.escape(sentence)):
            targets.check_url(url, allow_loopback=False)

    @pytest.mark.rule("target.loopback")
    @pytest.mark.parametrize(
        "url",
        ["http://localhost:3000/webhooks", "https://localhost/", "http://127.0.0.1:3000/", "http://[::1]/"],
    )
    def test_says_where_loopback_is_accepted(self, url: str) -> None:
        with pytest.raises(targets.TargetRefused) as refused:
            targets.check_url(url, allow_loopback=False)
        assert str(refused.value) == (
            "The URL must have a publicly reachable address. Only a service on your own machine (make run) accepts "
            "http://localhost. For the sandbox, use listen.py from the documentation."
        )

    @pytest.mark.parametrize(
        "url",
        ["http://127.0.0.1:9000/hooks", "http://localhost:80/", "http://[::1]:9000/", "https://127.0.0.1/"],
    )
    def test_accepts_loopback_if_it_is_allowed(self, url: str) -> None:
        assert targets.check_url(url, allow_loopback=True).startswith("http")
        with pytest.raises(
            targets.TargetRefused, match=r"https://, or here with http://localhost or http://127\.0\.0\.1\."
        ):
            targets.check_url("http://shop.example.com/", allow_loopback=True)
        with pytest.raises(targets.TargetRefused):
            targets.check_url(url, allow_loopback=False)

    @pytest.mark.rule("target.loopback", "target.public")
    @pytest.mark.parametrize(
        "url",
        [
            *("http://shop.example.com/", "http://10.0.0.1/", "http://169.254.169.254/"),
            *("http://0.0.0.0:9000/", "http://[::]:9000/", "http://[::ffff:127.0.0.1]:9000/"),
            *("http://2130706433/", "http://127.1/", "ftp://127.0.0.1/", "http://u@127.0.0.1/"),
            *("http://[::1%25lo]:9000/", "http://127.0.0.1:0/", "http://a.localhost:9000/"),
        ],
    )
    def test_accepts_http_and_addresses_only_for_loopback(self, url: str) -> None:
        with pytest.raises(targets.TargetRefused):
            targets.check_url(url, allow_loopback=True)

    @given(url=st.text(max_size=40).map("https://".__add__) | st.text(max_size=40))
    def test_either_refuses_or_returns_a_text_that_stays_the_same(self, url: str) -> None:
        with contextlib.suppress(targets.TargetRefused):
            normal = targets.check_url(url, allow_loopback=False)
            assert normal.isascii() and targets.check_url(normal, allow_loopback=False) == normal


class TestVet:
    @pytest.fixture
    def names(self, monkeypatch: pytest.MonkeyPatch) -> Names:
        names = Names(["1.1.1.1", "2606:4700:4700::1111"])
        monkeypatch.setattr(http, "resolver", lambda: names)
        return names

    def test_accepts_loopback_if_it_is_allowed(self) -> None:
        assert (
            targets.check_resolved_url("http://127.0.0.1:9000/x", allow_loopback=True)
            == "http://127.0.0.1:9000/x"
        )
        assert (
            targets.check_resolved_url("http://localhost:9000/x", allow_loopback=True)
            == "http://localhost:9000/x"
        )

    def test_accepts_a_name_with_public_addresses(self, names: Names) -> None:
        assert (
            targets.check_resolved_url("https://shop.example.com", allow_loopback=False)
            == "https://shop.example.com"
        )
        assert names.asked == 1

    @pytest.mark.parametrize("host", ["☃.example", "١.example", "ß.example", "xn--a.example"])
    def test_resolves_the_dns_form_of_the_name(self, host: str, names: Names) -> None:
        assert targets.check_resolved_url(f"https://{host}/", allow_loopback=False).isascii()
        assert names.hosts[0].startswith("xn--")

    @pytest.mark.rule("target.checks")
    @pytest.mark.parametrize("addresses", [["10.1.2.3"], ["1.1.1.1", "10.1.2.3"], ["::ffff:10.1.2.3"]])
    def test_refuses_a_name_with_an_internal_address_without_naming_it(
        self, addresses: list[str], names: Names
    ) -> None:
        names.answers = (addresses,)
        with pytest.raises(targets.TargetRefused, match="publicly reachable") as refused:
            targets.check_resolved_url("https://shop.example.com/", allow_loopback=False)
        assert "10.1" not in str(refused.value)

    def test_refuses_a_name_that_does_not_resolve_with_a_sentence(
        self, names: Names, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(targets, "RESOLVE_SECONDS", 0.05)
        answers: list[list[str] | None] = [[], None]
        for answer in answers:
            names.answers = (answer,)
            with pytest.raises(targets.TargetRefused, match="could not be resolved") as refused:
                targets.check_resolved_url("https://shop.example.com/", allow_loopback=False)
            assert "10.9.8.7" not in str(refused.value)

    def test_queries_the_real_name_servers(self) -> None:
        with pytest.raises(targets.TargetRefused, match="could not be resolved"):
            targets.check_resolved_url("https://shop.no-such-domain.invalid/", allow_loopback=False)
