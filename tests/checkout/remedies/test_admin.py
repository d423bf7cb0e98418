"""In the admin, remedies show the provider's answer, require a note, and check the ledger afterwards."""

from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from checkout import captures, refunds
from checkout.models import Checkout
from checkout.proof import ledger_proof
from payments import restore_guard
from payments.discrepancies import kinds
from payments.models import Booking, Discrepancy, Operation, Payment
from payments.providers.sandbox import fault_injection
from portal.models import User
from tests import mates
from tests.factories import CAUSE
from tests.portal import people
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db
OPERATIONS = "/admin/payments/operation/"
BOOKINGS = "/admin/payments/booking/"


@pytest.fixture
def operator() -> User:
    return User.objects.create_superuser("operator@example.com", people.PASSWORD)


@pytest.fixture
def admin(client: Client, operator: User) -> Client:
    people.operate(client, operator)
    return client


@pytest.fixture
def stuck(unpaid: Checkout, pay: Callable[..., Checkout]) -> Operation:
    """Return the part of a refund that Finn's card cannot accept. Lea's part is settled."""
    (share,) = mates.split(unpaid, 2000)
    pay(unpaid)
    captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    mates.pay(share, "4000000000005126")
    mates.settled(share)
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    mates.pump(unpaid.pk, rounds=2)
    return Operation.objects.get(payment__subject=share.pk, reason="card_account_closed")


def post_action(
    admin: Client, address: str, action: str, *rows: object, note: str | None = "By bank transfer"
) -> str:
    form = {"action": action, "_selected_action": [str(row) for row in rows]}
    answer = admin.post(
        address, form if note is None else form | {"confirmed": "1", "words": note}, follow=True
    )
    assert answer.status_code == 200
    return answer.content.decode()


class TestClosing:
    def test_shows_the_providers_answer_and_changes_nothing_before_confirmation(
        self, admin: Client, stuck: Operation
    ) -> None:
        with nothing_moves():
            page = post_action(admin, OPERATIONS, "settle_outside", stuck.pk, note=None)
        assert "<p>The bank said: the card’s account is closed.</p>" in page
        assert "<h1>Book the refund of £20.00 as settled outside?</h1>" in page
        assert "How it was settled" in page and "A-20417" in page
        assert "Do this only if the payer has the money. £20.00 is booked as paid to the payer." in page

    @pytest.mark.rule("operator.proof")
    def test_requires_a_note(self, admin: Client, stuck: Operation) -> None:
        with nothing_moves():
            assert "field-error" in post_action(admin, OPERATIONS, "settle_outside", stuck.pk, note=" ")

    @pytest.mark.rule("operator.once")
    def test_records_the_operator_and_the_note_and_proves_the_ledger(
        self, admin: Client, operator: User, unpaid: Checkout, stuck: Operation
    ) -> None:
        page = post_action(admin, OPERATIONS, "settle_outside", stuck.pk)
        assert "A-20417: Settled outside: By bank transfer. The order’s ledger adds up." in page
        unpaid.refresh_from_db()
        booking = Booking.objects.get()
        assert (unpaid.status, booking.note, booking.actor) == (
            "refunded",
            "By bank transfer",
            f"user:{operator.pk}",
        )
        entry = LogEntry.objects.get(object_id=str(stuck.pk))
        assert entry.change_message == "Settled outside: By bank transfer."
        page = admin.get(f"/admin/payments/booking/{booking.pk}/change/").content.decode()
        assert "By bank transfer" in page and "£20.00" in page

    def test_says_why_the_provider_prevents_it(self, admin: Client, stuck: Operation) -> None:
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        with nothing_moves():
            page = post_action(admin, OPERATIONS, "settle_outside", stuck.pk)
        assert "Not done. The provider says: nothing clear." in page
        assert not LogEntry.objects.exists()

    @pytest.mark.rule("restore.closed")
    @pytest.mark.parametrize("action", ["settle_outside", "send_again"])
    def test_waits_for_the_repair_of_a_database_that_was_restored(
        self, admin: Client, stuck: Operation, monkeypatch: pytest.MonkeyPatch, action: str
    ) -> None:
        monkeypatch.setattr(restore_guard, "is_closed", lambda: True)
        with nothing_moves():
            page = post_action(admin, OPERATIONS, action, stuck.pk)
        assert "Not done: the database was restored." in page
        assert not LogEntry.objects.exists()

    def test_is_possible_for_one_operation_at_a_time(self, admin: Client, stuck: Operation) -> None:
        others = Operation.objects.exclude(pk=stuck.pk).values_list("pk", flat=True)
        with nothing_moves():
            assert "Choose one" in post_action(admin, OPERATIONS, "settle_outside", stuck.pk, *others)

    def test_reports_a_broken_ledger(self, admin: Client, unpaid: Checkout, stuck: Operation) -> None:
        Payment.objects.filter(subject=unpaid.pk).update(abandoned_at=unpaid.created_at)
        found = {breach.kind.name for breach in ledger_proof.find_breaches()}
        assert found == {"ledger_payment_not_live"}
        page = post_action(admin, OPERATIONS, "send_again", stuck.pk)
        assert f"The ledger is broken: {kinds.LEDGER_PAYMENT_NOT_LIVE.sentence}." in page
        assert Discrepancy.objects.filter(kind="ledger_payment_not_live", subject=unpaid.pk).exists()


class TestOtherActions:
    def test_a_refund_is_sent_again(self, admin: Client, operator: User, stuck: Operation) -> None:
        page = post_action(admin, OPERATIONS, "send_again", stuck.pk, note="The account is open again")
        assert "Sent again: The account is open again. The order’s ledger adds up." in page
        assert LogEntry.objects.get().change_message == "Sent again: The account is open again."

    def test_the_question_says_what_sending_this_operation_again_does(
        self, admin: Client, stuck: Operation
    ) -> None:
        def question() -> str:
            return post_action(admin, OPERATIONS, "send_again", stuck.pk, note=None)

        at_once = "The refund goes to the provider at once."
        assert f"{at_once} If the account is still closed, it is refused again." in question()
        Operation.objects.filter(pk=stuck.pk).update(reason="refused")
        assert f"{at_once} If the bank’s reason still holds, it is refused again." in question()
        Operation.objects.filter(pk=stuck.pk).update(state="unknown", ended_at=None)
        page = question()
        assert f"{at_once} It is sent only if the provider says that it failed or never arrived." in page
        assert "(required)" in page and "since" in page

    def test_an_operation_in_doubt_is_given_up(
        self, admin: Client, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        fault_injection.set_fault(verb="authorize", mode="down", times=1)
        pay(unpaid)
        operation = Operation.objects.get()
        Operation.objects.update(created_at="2020-01-01T00:00Z")
        page = post_action(admin, OPERATIONS, "give_up", operation.pk, note=None)
        assert "The provider vouches that the operation never arrived." in page
        assert "Given up: Nobody waits. The order’s ledger adds up." in post_action(
            admin, OPERATIONS, "give_up", operation.pk, note="Nobody waits"
        )

    @pytest.mark.rule("money.booked", "operator.once")
    def test_a_booking_can_be_reversed(self, admin: Client, unpaid: Checkout, stuck: Operation) -> None:
        post_action(admin, OPERATIONS, "settle_outside", stuck.pk)
        booking = Booking.objects.get()
        assert "Take the booking back" in admin.get(f"{BOOKINGS}{booking.pk}/change/").content.decode()
        page = post_action(admin, BOOKINGS, "take_back", booking.pk, note="It never arrived")
        assert "Taken back: It never arrived." in page
        assert sum(Booking.objects.values_list("amount", flat=True)) == 0
        for row in Booking.objects.all():
            page = admin.get(f"{BOOKINGS}{row.pk}/change/").content.decode()
            assert "Take the booking back" not in page

    def test_the_pages_offer_the_actions_that_apply(self, admin: Client, stuck: Operation) -> None:
        page = admin.get(f"{OPERATIONS}{stuck.pk}/change/").content.decode()
        assert (
            ">Settled outside</button>" in page and ">Send again</button>" in page and "Give up" not in page
        )
        captured = Operation.objects.filter(kind="capture").first()
        assert captured is not None
        page = admin.get(f"{OPERATIONS}{captured.pk}/change/").content.decode()
        assert not any(words in page for words in ("Settled outside", "Send again", "Give up"))

    @pytest.mark.rule("operator.proof")
    @pytest.mark.parametrize("action", ["settle_outside", "send_again", "give_up"])
    def test_require_a_fresh_proof_of_identity(
        self, admin: Client, operator: User, stuck: Operation, action: str
    ) -> None:
        people.prove(admin, operator, ago=301)
        form = {"action": action, "_selected_action": str(stuck.pk), "confirmed": "1", "words": "Because"}
        with nothing_moves():
            answer = admin.post(OPERATIONS, form)
        assert answer.status_code == 302 and "reauthenticate" in answer["Location"]
        assert not LogEntry.objects.exists()

    def test_are_refused_to_users_who_can_only_view(self, client: Client, stuck: Operation) -> None:
        looker = User.objects.create_user("looker@example.com", people.PASSWORD, is_staff=True)
        people.operate(client, looker)
        with nothing_moves():
            client.post(OPERATIONS, {"action": "send_again", "_selected_action": str(stuck.pk)})
        assert not LogEntry.objects.exists()
