"""The operators' lists of orders, discrepancies and merchants."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout, Refund
from config.lib import clock
from payments import operator_stops
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Dispute, Merchant, Operation
from portal.backoffice import lists
from portal.models import User
from tests import factories, outside
from tests.portal import people
from webhooks.models import EventType

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]
ORDERS, DISCREPANCIES, MERCHANTS = (
    f"/admin/{model}/" for model in ("checkout/checkout", "payments/discrepancy", "payments/merchant")
)


def page_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


class TestOrders:
    def test_and_their_filter_use_the_words_of_the_portal(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        at("authorized")
        page = page_of(operator, ORDERS)
        assert "Held</span>" in page and ">Held</a>" in page and "Authorized" not in page
        assert "£90.00" in page and " ago</span>" in page

    def test_that_are_voided_do_not_say_you_cancelled(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        at("voided")
        page = page_of(operator, ORDERS)
        assert "Voided</span>" in page and "you cancelled" not in page

    def test_cost_the_same_for_many(self, operator: Client, acme: Merchant) -> None:
        factories.checkout(acme)
        page_of(operator, ORDERS)
        with CaptureQueriesContext(connection) as one:
            page_of(operator, ORDERS)
        for _ in range(5):
            factories.checkout(acme)
        with CaptureQueriesContext(connection) as many:
            page_of(operator, ORDERS)
        assert len(many) == len(one)

    def test_show_problems_next_to_the_status_with_one_query(
        self, operator: Client, captured: Checkout, posted: list[int]
    ) -> None:
        page_of(operator, ORDERS)
        with CaptureQueriesContext(connection) as before:
            page = page_of(operator, ORDERS)
        assert not any(f"{words}</span>" in page for words in ("Refund failed", "Disputed", "In doubt"))
        refund = {"merchant_refund_ref": "r-1", "status": "failed", "amount": 9000}
        Refund.objects.create(merchant=captured.merchant, checkout=captured, created_at=clock.now(), **refund)
        assert "Refund failed</span>" in page_of(operator, ORDERS)
        outside.dispute(captured.payment)
        page = page_of(operator, ORDERS)
        assert "Disputed</span>" in page and "Refund failed</span>" not in page, "one badge beside the state"
        Operation.objects.filter(payment=captured.payment, kind="capture").update(
            state="unknown", ended_at=None
        )
        with CaptureQueriesContext(connection) as after:
            assert "In doubt</span>" in page_of(operator, ORDERS)
        assert len(after) == len(before)

    def test_show_only_what_the_user_can_view(self, client: Client, captured: Checkout) -> None:
        person = User.objects.create_user("x@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_checkout"))
        people.operate(client, person)
        Operation.objects.filter(kind="capture").update(state="unknown", ended_at=None)
        assert "In doubt</span>" not in page_of(client, ORDERS)

    def test_offer_an_action_only_if_it_applies_to_a_row(self, operator: Client, captured: Checkout) -> None:
        page = page_of(operator, ORDERS)
        assert ">Cancel checkouts</span>" not in page and "has-none" in page
        factories.checkout(captured.merchant)
        page = page_of(operator, ORDERS)
        assert "<span>Cancel checkouts</span>" in page and "Tick checkouts first" in page
        assert page.count('data-fits="0"') == 1 and page.count('data-fits=""') == 1

    def test_state_their_sorting_and_link_to_those_of_their_merchant(
        self, operator: Client, captured: Checkout, rival: Merchant
    ) -> None:
        factories.checkout(rival, merchant_order_id="R-1")
        page = page_of(operator, ORDERS)
        assert "Newest first. All times are UTC." in page
        its = f"{ORDERS}?merchant__exact={captured.merchant_id}"
        assert f'href="{its}"' in page and "R-1" in page
        assert "R-1" not in page_of(operator, its)

    def test_can_be_filtered_by_problem(
        self, operator: Client, captured: Checkout, rival: Merchant, posted: list[int]
    ) -> None:
        factories.checkout(rival, merchant_order_id="R-1")
        for trouble in ("unclear", "disputed", "refund_failed"):
            assert "No matches" in page_of(operator, f"{ORDERS}?trouble={trouble}")
        refund = {"merchant_refund_ref": "r-1", "status": "failed", "amount": 9000}
        Refund.objects.create(merchant=captured.merchant, checkout=captured, created_at=clock.now(), **refund)
        outside.dispute(captured.payment)
        Operation.objects.filter(kind="capture").update(state="unknown", ended_at=None)
        for trouble in ("unclear", "disputed", "refund_failed"):
            page = page_of(operator, f"{ORDERS}?trouble={trouble}")
            assert captured.merchant_order_id in page and "R-1" not in page

    def test_without_a_match_say_so(self, operator: Client) -> None:
        assert "No matches" in page_of(operator, f"{ORDERS}?q=nothing")
        assert "No checkouts yet" in page_of(operator, ORDERS)


class TestDiscrepancies:
    def test_are_sentences_with_the_open_ones_first(self, operator: Client, captured: Checkout) -> None:
        capture = Operation.objects.get(kind="capture")
        reporting.report_operation(capture, kinds.ANOTHER_AMOUNT)
        reporting.report_operation(capture, kinds.MISSING_THERE)
        Discrepancy.objects.filter(kind="another_amount").update(closed_at=clock.now())
        page = page_of(operator, DISCREPANCIES)
        table = page[page.index("<tbody>") :]
        first, second = (
            table.index(words) for words in (kinds.MISSING_THERE.sentence, kinds.ANOTHER_AMOUNT.sentence)
        )
        assert first < second and "Closed</span>" in table[second:]
        assert captured.merchant_order_id in table and "£90.00" in table and "Visa 4242" in table
        assert "another_amount</a>" not in page, "a filter's choice is a sentence too"
        assert table.count("_selected_action") == 1, "what is closed is not closed again"

    def test_each_link_to_the_page_where_it_is_resolved(
        self, client: Client, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("portal.backoffice.cases.MAX_SHOWN", 1)
        capture = Operation.objects.get(kind="capture")
        for kind in (kinds.ANOTHER_AMOUNT, kinds.MISSING_THERE, kinds.VOID_REFUSED):
            reporting.report_operation(capture, kind)
        Discrepancy.objects.filter(kind="void_refused").update(closed_at=clock.now())
        first, second = Discrepancy.objects.filter(closed_at=None).order_by("created_at")
        people.operate(client)
        page = page_of(client, DISCREPANCIES)
        assert f'href="/admin/operations/#case-{first.pk}">Decide<' in page
        assert f'href="{ORDERS}{captured.pk}/change/#case-{second.pk}">Decide<' in page, (
            "too new to stand beside the oldest ones"
        )
        assert page.count(">Decide<") == 2, "what is closed is decided"
        assert ">What is wrong</h3>" in page and ">Kind</h3>" not in page
        person = User.objects.create_user("x@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_discrepancy"))
        people.operate(client, person)
        assert ">Decide<" not in page_of(client, DISCREPANCIES), "nor may they see where"
        person.user_permissions.set(
            Permission.objects.filter(codename__in=["view_discrepancy", "view_operation"])
        )
        page = page_of(client, DISCREPANCIES)
        assert f'href="{DISCREPANCIES}{second.pk}/change/">Decide<' in page, "nor do they see its order"

    def test_of_a_dispute_says_until_when_it_can_be_answered(
        self, operator: Client, captured: Checkout, posted: list[int]
    ) -> None:
        outside.dispute(captured.payment)
        Dispute.objects.update(respond_by=datetime(2026, 12, 5, 12, tzinfo=UTC))
        assert "Answer by 5 Dec, 12:00.</span>" in page_of(operator, DISCREPANCIES)
        Discrepancy.objects.update(closed_at=clock.now())
        assert "Answer by" not in page_of(operator, DISCREPANCIES)

    def test_show_the_active_filters(self, operator: Client, captured: Checkout) -> None:
        assert "Filters: open only" in page_of(operator, f"{DISCREPANCIES}?state=open")
        both = page_of(operator, f"{ORDERS}?status__exact=captured&merchant__exact={captured.merchant_id}")
        assert "Filters: Acme Tickets, captured only" in both and ">State</h3>" in both
        assert "Filters</span>" in page_of(operator, ORDERS)

    def test_are_found_by_their_order_their_kind_and_their_note(
        self, operator: Client, captured: Checkout, rival: Merchant
    ) -> None:
        reporting.report_operation(Operation.objects.get(kind="capture"), kinds.ANOTHER_AMOUNT)
        reporting.report(kinds.MISSING_HERE, rival.pk, merchant=rival)
        for term, words in {
            captured.merchant_order_id: kinds.ANOTHER_AMOUNT.sentence,
            "sing_here": kinds.MISSING_HERE.sentence,
            "is UNKNOWN here": kinds.MISSING_HERE.sentence,
        }.items():
            page = page_of(operator, f"{DISCREPANCIES}?q={term}")
            table = page[page.index("<tbody>") :]
            assert words in table and table.count("_selected_action") == 1
        assert "No matches" in page_of(operator, f"{DISCREPANCIES}?q=nobody")


class TestMerchants:
    def test_show_suspended_ones_first_with_the_reason(
        self, operator: Client, acme: Merchant, rival: Merchant
    ) -> None:
        operator_stops.suspend(rival, reason="Tickets that do not exist")
        page = page_of(operator, MERCHANTS)
        table = page[page.index("<tbody>") :]
        assert table.index("Rival") < table.index("Stopped</span>") < table.index("Acme Tickets")
        assert "Tickets that do not exist" in table and "Open</span>" in table

    def test_with_the_same_name_are_distinguished_by_their_shop(
        self, operator: Client, acme: Merchant
    ) -> None:
        Merchant.objects.filter(pk=acme.pk).update(return_hosts=["tickets.example"])
        page = page_of(operator, MERCHANTS)
        assert "tickets.example" in page and f"…{str(acme.pk)[-6:]}" in page
        assert "ask for marketing consent" not in page and "Asks for marketing consent" in page

    def test_have_no_filter_with_a_single_choice(
        self, operator: Client, acme: Merchant, rival: Merchant
    ) -> None:
        assert ">Country</h3>" not in page_of(operator, MERCHANTS)
        its = page_of(operator, f"{MERCHANTS}?country={acme.country}")
        assert ">Country</h3>" in its, "what is chosen can be taken back"
        Merchant.objects.filter(pk=rival.pk).update(country="FR")
        assert ">Country</h3>" in page_of(operator, MERCHANTS)

    def test_have_pages(self, operator: Client) -> None:
        Merchant.objects.bulk_create(Merchant(name=f"Shop {number}", country="GB") for number in range(550))
        page = page_of(operator, MERCHANTS)
        pages = page[page.index('<span class="pages">') :]
        assert '<span class="this-page">1</span>' in pages and "<span>…</span>" in pages

    def test_are_filtered_by_whether_they_are_suspended(
        self, operator: Client, acme: Merchant, rival: Merchant
    ) -> None:
        operator_stops.suspend(rival, reason="Tickets that do not exist")
        for state, there, away in (("stopped", "Rival", "Acme"), ("open", "Acme", "Rival")):
            page = page_of(operator, f"{MERCHANTS}?state={state}")
            table = page[page.index("<tbody>") :]
            assert there in table and away not in table

    def test_show_those_suspended_by_the_stop_of_all(self, operator: Client, acme: Merchant) -> None:
        factories.stop(None)
        assert "All stopped</span>" in page_of(operator, MERCHANTS)

    def test_have_a_button_for_each_action_that_applies(
        self, operator: Client, acme: Merchant, rival: Merchant
    ) -> None:
        page = page_of(operator, MERCHANTS)
        assert "<span>Resume" not in page, "nobody is suspended"
        operator_stops.suspend(rival, reason="Tickets that do not exist")
        page = page_of(operator, MERCHANTS)
        assert 'name="index" value="1"><span>Resume' in page and page.count('data-fits="1 2"') == 1
        assert 'name="index" value="2"><span>Invite an owner' in page and page.count('data-fits="0 2"') == 1
        form = {"action": ["suspend", "resume", "invite_owner"], "index": "1"}
        answer = operator.post(MERCHANTS, form, follow=True)
        assert "Items must be selected" in answer.content.decode()
        asked = operator.post(MERCHANTS, form | {"_selected_action": str(acme.pk)}).content.decode()
        assert "<h1>Resume Acme Tickets?</h1>" in asked
        assert '<input type="hidden" name="action" value="resume">' in asked


@pytest.mark.parametrize(
    ("label", "field", "shown", "words"),
    [
        ("payments.operation", "state", Operation.State.IN_FLIGHT.label, "Being sent"),
        ("webhooks.event", "type", EventType.OPTED_IN.label, EventType.OPTED_IN.value),
    ],
)
def test_filters_use_the_words_of_the_badges_and_the_names_of_events(
    label: str, field: str, shown: str, words: str
) -> None:
    assert lists.choice_words(label, field, str(shown)) == words
