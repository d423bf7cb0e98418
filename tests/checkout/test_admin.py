"""In the admin, operators can cancel checkouts with a reason, and cannot search customers by phone number."""

from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from checkout.models import Checkout
from payments import restore_guard
from payments.models import Merchant, Operation
from portal.models import User
from tests import factories
from tests.factories import make_late
from tests.portal import people
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db
LIST = "/admin/checkout/checkout/"


@pytest.fixture
def operator() -> User:
    return User.objects.create_superuser("operator@example.com")


@pytest.fixture
def admin(client: Client, operator: User) -> Client:
    people.operate(client, operator)
    return client


def cancel(admin: Client, *rows: Checkout, reason: str | None = "A duplicate") -> str:
    form = {"action": "cancel", "_selected_action": [str(row.pk) for row in rows]}
    answer = admin.post(
        LIST, form if reason is None else form | {"confirmed": "1", "words": reason}, follow=True
    )
    assert answer.status_code == 200
    return answer.content.decode()


class TestCancelling:
    def test_releases_the_hold_and_records_the_operator_and_the_reason(
        self, admin: Client, operator: User, held: Checkout
    ) -> None:
        assert "A-20417 is cancelled. £90.00 is being released." in cancel(admin, held)
        held.refresh_from_db()
        assert (held.status, held.void_reason) == ("voided", "merchant_cancel")
        assert held.changes.get(to="voided").actor == f"user:{operator.pk}"
        assert Operation.objects.get(kind="void").actor == f"user:{operator.pk}"
        assert LogEntry.objects.get(object_id=str(held.pk)).change_message == "Cancelled: A duplicate"

    def test_ends_an_unpaid_checkout(self, admin: Client, unpaid: Checkout) -> None:
        assert "is cancelled. No money was held." in cancel(admin, unpaid)
        unpaid.refresh_from_db()
        assert unpaid.status == "voided"

    def test_asks_first(self, admin: Client, held: Checkout) -> None:
        with nothing_moves():
            page = cancel(admin, held, reason=None)
        assert ">A-20417</bdi> and release £90.00?</h1>" in page and ">Release £90.00<" in page
        assert "The hold on Visa 4242 ends. No money is taken. Acme Tickets is notified." in page
        assert (
            "If Acme Tickets captures first, the order is not cancelled. Without a cancellation, the hold ends on"
            in page
        )
        assert "Cancel checkouts" not in page, "only one is asked about"

    def test_asks_about_an_unpaid_checkout_without_mentioning_a_hold(
        self, admin: Client, unpaid: Checkout
    ) -> None:
        page = cancel(admin, unpaid, reason=None)
        assert ">A-20417</bdi>?</h1>" in page and "The order ends unpaid, and no money is held." in page

    def test_asks_about_several_checkouts_with_one_line_each(
        self, admin: Client, acme: Merchant, held: Checkout
    ) -> None:
        other = factories.checkout(acme, merchant_order_id="B-1")
        with nothing_moves():
            page = cancel(admin, held, other, reason=None)
        assert (
            "<h1>Cancel checkouts?</h1>" in page
            and "A hold is released" in page
            and "A-20417" in page
            and "B-1" in page
        )

    def test_links_back_to_the_page_where_it_started(self, admin: Client, held: Checkout) -> None:
        form = {"action": "cancel", "_selected_action": str(held.pk)}
        page = admin.post(LIST, form | {"from_page": "1"}).content.decode()
        assert f'href="{LIST}{held.pk}/change/">Back without changes' in page
        assert f'href="{LIST}">Back without changes' in admin.post(LIST, form).content.decode()

    def test_requires_a_reason(self, admin: Client, held: Checkout) -> None:
        with nothing_moves():
            assert "field-error" in cancel(admin, held, reason=" ")

    @pytest.mark.parametrize(
        ("status", "why"),
        [
            ("captured", "it is paid. Its merchant refunds it instead."),
            ("refunding", "it is being refunded."),
            ("refunded", "it has been refunded."),
            ("expired", "it has expired, and no money is held."),
            ("voided", "it was voided before."),
        ],
    )
    def test_says_why_a_checkout_cannot_be_cancelled(
        self, admin: Client, at: Callable[[str], Checkout], status: str, why: str
    ) -> None:
        checkout = at(status)
        with nothing_moves():
            assert f"A-20417 is not cancelled: {why}" in cancel(admin, checkout)
        assert not LogEntry.objects.exists()

    def test_reports_a_hold_that_has_lapsed(self, admin: Client, held: Checkout) -> None:
        make_late(held)
        assert "A-20417 is not cancelled: its hold had lapsed." in cancel(admin, held)
        held.refresh_from_db()
        assert held.void_reason == "auth_expired" and not LogEntry.objects.exists()

    def test_is_refused_while_a_card_operation_is_open(self, admin: Client, held: Checkout) -> None:
        Operation.objects.filter(payment=held.payment).update(state="unknown", ended_at=None)
        with nothing_moves():
            assert "a card operation is open" in cancel(admin, held)

    def test_reports_the_result_for_each_checkout(
        self, admin: Client, acme: Merchant, captured: Checkout
    ) -> None:
        other = factories.checkout(acme, merchant_order_id="B-1")
        page = cancel(admin, captured, other)
        assert "A-20417 is not cancelled" in page and "B-1 is cancelled." in page

    @pytest.mark.rule("restore.closed")
    def test_waits_for_the_repair_of_a_database_that_was_restored(
        self, admin: Client, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(restore_guard, "is_closed", lambda: True)
        with nothing_moves():
            page = cancel(admin, held)
        assert "A-20417 is not cancelled: the database was restored." in page

    def test_cancels_only_the_selected_checkouts(self, admin: Client, held: Checkout, acme: Merchant) -> None:
        other = factories.checkout(acme)
        form = {"action": "cancel", "_selected_action": str(held.pk), "select_across": "1"}
        admin.post(LIST, form | {"confirmed": "1", "words": "All"})
        other.refresh_from_db()
        assert other.status == "created"

    def test_is_refused_to_users_who_can_only_view(
        self, admin: Client, operator: User, held: Checkout
    ) -> None:
        User.objects.filter(pk=operator.pk).update(is_superuser=False)
        with nothing_moves():
            admin.post(
                LIST, {"action": "cancel", "_selected_action": str(held.pk), "confirmed": "1", "words": "x"}
            )

    def test_history_is_shown_in_words(self, admin: Client, held: Checkout) -> None:
        page = admin.get(f"{LIST}{held.pk}/change/").content.decode()
        assert '<td data-label="To">Held</td>' in page and '<td data-label="From">Not paid yet</td>' in page
        assert "<dt>Hold ends</dt>" in page

    @pytest.mark.parametrize(
        ("status", "is_offered"), [("created", True), ("authorized", True), ("captured", False)]
    )
    def test_is_offered_if_the_status_allows_it(
        self, admin: Client, at: Callable[[str], Checkout], status: str, is_offered: bool
    ) -> None:
        page = admin.get(f"{LIST}{at(status).pk}/change/").content.decode()
        assert ("Cancel the order" in page) is is_offered


@pytest.mark.rule("operator.search")
def test_the_customer_list_cannot_be_searched_by_phone_number(admin: Client, held: Checkout) -> None:
    """Only the operators' search page finds phone numbers, and it records who has searched."""
    assert held.lead and held.lead.phone
    for term, count in ((held.lead.phone, 0), (str(held.lead.pk), 1)):
        page = admin.get("/admin/checkout/customer/", {"q": term}).content.decode()
        assert page.count("/change/") == count, term
