"""The daily check of the payment pages. In these tests, the network can change the responses."""

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from multidict import CIMultiDict

from config.lib.web import http, static_files
from config.schedule import CALENDAR
from hosted_page import tasks
from hosted_page.page_security import daily_check, inventory
from payments import safe_answers
from payments.models import Discrepancy
from payments.provider import ProviderUnreachable
from payments.providers.stripe.adapter import StripeProvider
from portal.backoffice import cases

pytestmark = [pytest.mark.django_db, pytest.mark.rule("card_page.daily_check")]
CARD, FIRST = "Card form of the sandbox bank", "Phone number"
HTML, SCRIPT = "text/html", "text/javascript"


class Network:
    """The network between the service and the daily check.

    If the content type of a response starts with `kind`, the function `change` can alter the response.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.kind = HTML
        self.change: Callable[[Any], None] = lambda _answer: None

    def request(self, method: str, url: str, body: bytes, headers: Any, **bounds: Any) -> http.Response:
        assert method == "GET" and bounds["largest"] <= 256 * 1024 and 0 < bounds["seconds"] <= 10
        answer = Client().get(url, headers=headers)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
        found = _Answer(answer.status_code, content, CIMultiDict(answer.items()))
        self.asked.append(url.partition("?")[0])
        if found.headers["Content-Type"].startswith(self.kind):
            self.change(found)
        return http.Response(found.status, found.body, found.headers)


class _Answer:
    def __init__(self, status: int, body: bytes, headers: CIMultiDict[str]) -> None:
        self.status, self.body, self.headers = status, body, headers

    def replace(self, old: str, new: str) -> None:
        assert old in self.body.decode() or not self.body
        self.body = self.body.replace(old.encode(), new.encode())


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    made = Network()
    monkeypatch.setattr(http, "request", made.request)
    return made


def changes() -> str:
    return "\n".join(daily_check.check().changes)


class TestAnUnchangedPage:
    def test_leaves_no_discrepancy(self, network: Network) -> None:
        tasks.check_card_page()
        assert not Discrepancy.objects.exists()

    def test_is_read_together_with_all_our_scripts(self, network: Network) -> None:
        daily_check.run()
        first, card, *scripts = network.asked
        here = settings.BASE_URL
        assert first == f"{here}/pay/check" and card.startswith(f"{here}/bank/card/")
        assert scripts == [f"{here}/static/{script.name}" for script in inventory.SCRIPTS if script.is_ours]

    def test_under_our_host_with_the_providers_script_is_accepted(
        self, network: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(safe_answers, "card_page", StripeProvider().open_card_form)
        found = daily_check.check()
        assert found.changes == [] and found.unanswered == []
        assert [path for path in found.paths if path == "/pay/check"] == ["/pay/check"] * 2

    def test_at_a_provider_elsewhere_is_not_read(
        self, network: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(safe_answers, "card_page", lambda _form: "https://provider.example/card")
        assert daily_check.check().changes == []
        assert not [address for address in network.asked if "provider.example" in address]


class TestAChange:
    @pytest.mark.parametrize(
        ("name", "value", "discrepancy"),
        [
            ("Content-Security-Policy", "script-src *", "Content-Security-Policy is script-src *, not "),
            ("X-Content-Type-Options", "", "X-Content-Type-Options is missing, not nosniff."),
            ("Referrer-Policy", "unsafe-url", "Referrer-Policy is unsafe-url, not "),
            ("X-Frame-Options", "ALLOWALL", "X-Frame-Options is ALLOWALL, not DENY."),
            ("Permissions-Policy", "", "Permissions-Policy is missing, not "),
            ("Access-Control-Allow-Origin", "*", "Access-Control-Allow-Origin is *, not missing."),
            ("Link", "</x.js>; rel=preload", "Link is </x.js>; rel=preload, not missing."),
            (
                "Strict-Transport-Security",
                "max-age=0",
                "Strict-Transport-Security is max-age=0, not missing.",
            ),
        ],
    )
    def test_of_a_header_is_named_on_each_page(
        self, network: Network, name: str, value: str, discrepancy: str
    ) -> None:
        def change(answer: Any) -> None:
            answer.headers.pop(name, None)
            answer.headers.update({name: value} if value else {})

        network.change = change
        assert f"{FIRST}: {discrepancy}" in changes() and f"{CARD}: {discrepancy}" in changes()

    def test_of_a_header_that_is_sent_twice_is_named(self, network: Network) -> None:
        network.change = lambda answer: answer.headers.add("X-Frame-Options", "ALLOWALL")
        assert "X-Frame-Options is DENY, ALLOWALL, not DENY." in changes()

    @pytest.mark.parametrize(
        ("added", "discrepancy"),
        [
            ('<script src="https://evil.example/skim.js"></script>', "loads https://evil.example/skim.js"),
            ('<script src="/static/js/bill.js"></script>', "loads /static/js/bill.js, which is not in"),
            ("<script>steal()</script>", "has an inline script."),
            ('<iframe src="https://evil.example"></iframe>', "has an element iframe."),
            ('<img onerror="steal()">', "has inline code in img, onerror."),
        ],
    )
    def test_of_the_code_in_a_page_is_named(self, network: Network, added: str, discrepancy: str) -> None:
        network.change = lambda answer: answer.replace("</body>", f"{added}</body>")
        assert f"{FIRST} {discrepancy}" in changes() and f"{CARD} {discrepancy}" in changes()

    def test_of_an_integrity_is_named(self, network: Network) -> None:
        network.change = lambda answer: answer.replace(' integrity="sha256-', ' title="sha256-')
        assert f"{CARD} loads /static/js/card.js with the integrity missing." in changes()

    def test_of_a_script_that_is_no_longer_loaded_is_named(self, network: Network) -> None:
        network.change = lambda answer: answer.replace("js/frame.js", "js/none.js")
        assert f"{FIRST} does not load /static/js/frame.js." in changes()

    def test_of_a_scripts_contents_is_named_with_its_digest(self, network: Network) -> None:
        network.kind = SCRIPT
        network.change = lambda answer: setattr(answer, "body", answer.body + b"steal()")
        content = static_files.source_bytes("js/card.js") or b""
        digest = static_files.integrity(content + b"steal()")
        assert f"js/card.js is delivered with other contents: {digest}." in changes()
        assert len(daily_check.check().changes) == sum(script.is_ours for script in inventory.SCRIPTS)

    def test_that_redirects_is_named_and_not_followed(self, network: Network) -> None:
        def change(answer: Any) -> None:
            answer.status, answer.headers["Location"] = 302, "https://evil.example/pay"

        network.change = change
        assert "/pay/check answers 302 instead of 200." in changes()
        assert not [address for address in network.asked if "evil.example" in address]


class TestTheDiscrepancy:
    @pytest.fixture
    def tampered(self, network: Network) -> Network:
        network.change = lambda answer: answer.replace("</body>", "<script>steal()</script></body>")
        return network

    def test_names_each_change_once_while_it_is_open(self, tampered: Network) -> None:
        tasks.check_card_page()
        tasks.check_card_page()
        found = Discrepancy.objects.get()
        assert found.kind == "card_page_changed" and found.merchant is None
        assert found.facts == {"changes": [f"{CARD} has an inline script.", f"{FIRST} has an inline script."]}

    def test_of_other_changes_is_reported_separately(self, tampered: Network) -> None:
        daily_check.run()
        tampered.change = lambda answer: answer.replace("</body>", "<iframe></iframe></body>")
        daily_check.run()
        assert Discrepancy.objects.filter(kind="card_page_changed").count() == 2

    def test_stays_open_after_a_good_check(self, tampered: Network) -> None:
        daily_check.run()
        tampered.change = lambda _answer: None
        daily_check.run()
        assert Discrepancy.objects.get().closed_at is None

    def test_has_a_maximum_size_for_any_page(self, network: Network) -> None:
        added = "".join(f'<script src="/{n}{"x" * 900}.js"></script>' for n in range(100))
        network.change = lambda answer: answer.replace("</body>", f"{added}</body>")
        daily_check.run()
        named = Discrepancy.objects.get().facts["changes"]
        assert len(named) == 20 and max(map(len, named)) == 300

    def test_shows_operators_what_changed_and_what_to_do(self, tampered: Network) -> None:
        daily_check.run()
        (case,) = cases.open_cases(Discrepancy.objects.get().created_at, None)
        assert case.title == "Browsers get another payment page than this release delivers"
        assert f"{CARD} has an inline script." in case.meaning and "Stop all payments" in case.meaning


class TestSilence:
    @pytest.fixture
    def silent(self, network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
        def request(*_: Any, **__: Any) -> http.Response:
            raise http.NoAnswer("TimeoutError")

        monkeypatch.setattr(http, "request", request)

    def test_is_a_discrepancy_until_a_check_succeeds(
        self, silent: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tasks.check_card_page()
        found = Discrepancy.objects.get()
        assert (
            found.kind == "card_page_unchecked" and "/pay/check: TimeoutError." in found.facts["unanswered"]
        )
        monkeypatch.setattr(http, "request", Network().request)
        tasks.check_card_page()
        found.refresh_from_db()
        assert found.closed_at is not None and "A later check got all answers." in found.note

    def test_includes_a_5xx_response(self, network: Network) -> None:
        network.change = lambda answer: setattr(answer, "status", 503)
        found = daily_check.check()
        assert found.changes == [] and "/pay/check answers 503 instead of 200." in found.unanswered

    def test_of_the_provider_is_reported_separately(
        self, network: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unreachable(_form: Any) -> Any:
            raise ProviderUnreachable

        monkeypatch.setattr(safe_answers, "card_page", unreachable)
        assert daily_check.check().unanswered == ["The provider gave no card page."]

    def test_ends_in_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(daily_check, "SECONDS", 0.0)
        found = daily_check.check()
        assert set(found.unanswered) and all("no time left" in said for said in found.unanswered)


class TestTheCommand:
    def test_prints_that_all_is_as_released(self, network: Network) -> None:
        printed = StringIO()
        call_command("check_card_page", stdout=printed)
        count = sum(script.is_ours for script in inventory.SCRIPTS) + 2
        assert printed.getvalue() == f"{count} addresses answer as this release does.\n"

    def test_prints_what_differs_and_exits_1(self, network: Network) -> None:
        network.change = lambda answer: answer.replace("</body>", "<script>steal()</script></body>")
        printed = StringIO()
        with pytest.raises(SystemExit) as ended:
            call_command("check_card_page", stdout=printed)
        assert ended.value.code == 1 and f"{CARD} has an inline script." in printed.getvalue()
        assert Discrepancy.objects.count() == 1


def test_beat_starts_it_once_a_day() -> None:
    _, when = CALENDAR[tasks.check_card_page.name]
    assert len(when.hour) == len(when.minute) == 1 and len(when.day_of_month) == 31
