import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout.models import ApiCall, Checkout
from payments.models import Merchant
from portal import files
from portal.models import AuditEntry, Role
from portal.orders import search
from tests import factories
from tests.conftest import Api
from tests.portal import stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.SUPPORT))


def found(merchant: Merchant, **typed: str) -> set[str]:
    form = search.Filters(typed)
    assert form.is_valid(), form.errors
    rows = search.checkouts(merchant, form.cleaned_data)
    return {checkout.merchant_order_id for checkout in rows}


class TestSearch:
    def test_takes_an_order_id_a_uuid_last_digits_or_a_request_id(self, api: Api, acme: Merchant) -> None:
        uuid = api.post("checkouts", factories.order(merchant_order_id="A-1")).json()["data"]["checkout_uuid"]
        stage.hold(Checkout.objects.get(pk=uuid))
        factories.checkout(acme, merchant_order_id="A-2")
        request_id = ApiCall.objects.get(checkout_uuid=uuid).request_id
        for text in ("A-1", uuid, uuid.upper(), "4242", request_id, " A-1 "):
            assert found(acme, q=text) == {"A-1"}, text
        for text in ("A-", "nobody", "%", "4444", "01a1ff87-30a0-763f-ad37-2dcca246cbf9"):
            assert found(acme, q=text) == set(), text

    def test_never_finds_a_strangers(self, acme: Merchant, rival: Merchant) -> None:
        theirs = stage.captured(rival, merchant_order_id="R-1")
        for text in ("R-1", str(theirs.pk), "4242"):
            assert found(acme, q=text) == set()

    def test_by_state(self, acme: Merchant, at: Any) -> None:
        lapsed = at("lapsed")
        assert found(acme, state="lapsed") == {lapsed.merchant_order_id}
        assert found(acme, state="cancelled") == found(acme, state="captured") == set()

    def test_by_day_in_the_merchants_own_time(self, acme: Merchant, unpaid: Checkout) -> None:
        acme.time_zone = "Asia/Tokyo"
        late = datetime(2026, 11, 15, 23, 30, tzinfo=UTC)  # the 16th in Tokyo
        Checkout.objects.filter(pk=unpaid.pk).update(created_at=late)
        assert found(acme, since="2026-11-16", until="2026-11-16") == {unpaid.merchant_order_id}
        assert found(acme, until="2026-11-15") == found(acme, since="2026-11-17") == set()

    @pytest.mark.parametrize(
        ("typed", "orders"),
        [
            ("20", {"P", "Y", "K"}),
            ("90", {"P", "Y"}),
            ("£90.01", {"Y"}),
            ("9000", {"Y"}),
            ("90,00", {"P", "Y"}),
            ("1,000", {"Y"}),
            ("9,000.00", {"Y"}),
        ],
    )
    def test_by_amount_in_each_currencys_own_units(
        self, acme: Merchant, typed: str, orders: set[str]
    ) -> None:
        for name, currency in (("P", "GBP"), ("Y", "JPY"), ("K", "KWD")):
            items = [factories.item(currency=currency, quantity=1, unit_price=9000)]
            order = {"currency": currency, "items": items, "total_amount": 9000}
            checkout = factories.checkout(acme, merchant_order_id=name, **order)
            if name == "K":
                Checkout.objects.filter(pk=checkout.pk).update(amount=20_000)  # 20.000
        assert found(acme, at_least=typed) == orders

    @pytest.mark.parametrize(
        "typed",
        [
            {"since": "yesterday"},
            {"at_least": "much"},
            {"state": "lost"},
            {"since": "2026-11-02", "until": "2026-11-01"},
            {"since": "0001-01-01"},
            {"until": "9999-12-31"},
        ],
    )
    def test_that_cannot_be_read_says_so_and_shows_all(
        self, client: Client, unpaid: Checkout, typed: dict[str, str]
    ) -> None:
        page = client.get("/portal/checkouts", typed)
        assert page.status_code == 200 and unpaid.merchant_order_id in page.content.decode()

    @pytest.mark.parametrize("text", ["\x00", "'", "\\", "<script>", "x" * 5000, "٤٢٤٢", "\ud83d\ude00"])
    def test_takes_whatever_is_typed(self, client: Client, text: str) -> None:
        answer = client.get("/portal/checkouts", {"q": text.encode("utf-8", "surrogatepass")})
        assert answer.status_code == 200 and b"<script>" not in answer.content.split(b"<main")[1]


class TestPages:
    def test_go_on_where_the_last_one_ended(self, acme: Merchant, client: Client) -> None:
        for number in range(53):
            factories.checkout(acme, merchant_order_id=f"N-{number:02}")
        first = client.get("/portal/checkouts").content.decode()
        assert first.count("<tr>") - 1 == 50 and "N-52" in first and "N-02" not in first
        older = first.split('">Older<')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
        second = client.get(f"/portal/checkouts{older}").content.decode()
        assert second.count("<tr>") - 1 == 3 and "N-02" in second and ">Newest<" in second

    def test_of_a_strange_cursor_begin_anew(self, client: Client) -> None:
        assert client.get("/portal/checkouts?cursor=abc")["Location"] == "/portal/checkouts"

    def test_cost_the_same_for_many_rows(self, acme: Merchant, client: Client) -> None:
        def cost() -> int:
            with CaptureQueriesContext(connection) as queries:
                client.get("/portal/checkouts")
            return len(queries)

        stage.captured(acme)
        cost()  # a session's first request also writes when it began
        few = cost()
        for _ in range(10):
            stage.captured(acme)
        assert cost() == few <= 20

    def test_answer_htmx_with_the_part_alone(self, client: Client, unpaid: Checkout) -> None:
        part = client.get("/portal/checkouts", headers={"HX-Request": "true", "HX-Target": "found"})
        assert unpaid.merchant_order_id in part.content.decode() and "<html" not in part.content.decode()

    def test_of_nothing_say_the_next_step(self, client: Client) -> None:
        assert "No checkouts yet" in client.get("/portal/checkouts").content.decode()
        assert "Clear the filters" in client.get("/portal/checkouts?q=nobody").content.decode()


@pytest.mark.rule("portal.csv")
class TestFile:
    def read(self, client: Client, query: str = "") -> list[dict[str, str]]:
        answer: Any = client.get(f"/portal/checkouts.csv{query}")
        assert answer["Content-Type"] == "text/csv; charset=utf-8" and answer.streaming
        text = b"".join(answer.streaming_content).decode("utf-8-sig")
        return list(csv.DictReader(io.StringIO(text)))

    def test_has_what_the_filters_ask_for(self, acme: Merchant, client: Client, unpaid: Checkout) -> None:
        paid = stage.captured(acme, merchant_order_id="A-2")
        (row,) = self.read(client, "?state=captured")
        assert (row["order_id"], row["status"], row["amount"], row["currency"], row["card_last4"]) == (
            *("A-2", "captured", "90.00", "GBP", "4242"),
        )
        assert row["checkout_uuid"] == str(paid.pk) and len(self.read(client)) == 2
        entry = AuditEntry.objects.filter(action="exported").latest("created_at")
        assert entry.facts == {"file": "checkouts", "filters": {}}

    def test_goes_over_many_pages(
        self, acme: Merchant, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files, "BATCH", 3)
        wanted = [
            factories.checkout(acme, merchant_order_id=f"N-{number}").merchant_order_id for number in range(7)
        ]
        same = Checkout.objects.first()
        assert same
        Checkout.objects.update(created_at=same.created_at - timedelta(days=1))
        assert sorted(row["order_id"] for row in self.read(client)) == sorted(wanted)

    @pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
    def test_runs_no_formula(self, acme: Merchant, client: Client, start: str) -> None:
        checkout = factories.checkout(acme)
        Checkout.objects.filter(pk=checkout.pk).update(merchant_order_id=f"{start}cmd|calc")
        assert self.read(client)[0]["order_id"] == f"'{start}cmd|calc"


class TestCell:
    @pytest.mark.parametrize(
        "text", ["=1+1", " =1+1", "+1", "-x", "-1+1", "@a", "\t=1", "\r=1", "\n=1", "＝1", "|a", "%0"]
    )
    def test_that_a_spreadsheet_would_run_is_text(self, text: str) -> None:
        assert files.cell(text) == f"'{text}"

    @pytest.mark.parametrize("value", ["-90.00", "12", 5, "x;=1+1", "a=b", ""])
    def test_of_numbers_and_words_stays(self, value: str | int) -> None:
        assert files.cell(value) == value

    def test_is_always_quoted(self) -> None:
        answer = files.answer("a.csv", ["A;B"], [["x;=1+1", 5, 'say "hi"', None]])
        written = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[arg-type]
        assert written == '"A;B"\r\n"x;=1+1","5","say ""hi""",""\r\n'
