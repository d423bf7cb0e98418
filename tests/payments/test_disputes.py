"""A dispute is booked only if the bank's books contain it. If several messages report it, it is booked once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from checkout import captures, refunds, tasks
from checkout.models import Checkout
from config.lib import clock
from payments import disputes
from payments.inquiring import inquiries, reconciliation
from payments.models import Discrepancy, Dispute, Inquiry, Merchant, Movement, Payment, Posting
from payments.provider import DisputeLine, DisputeRecord, DisputeStatus, ProviderUnreachable
from payments.providers.sandbox import bank, client, disputing, settling
from payments.providers.sandbox.models import Charge
from tests import mates
from tests.conftest import Api
from tests.factories import CAUSE, make_late
from tests.outages import leave_in_doubt
from tests.outside import DISPUTED, balances, decide, dispute, hear
from tests.refusals import nothing_moves

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


class TestADispute:
    @pytest.mark.rule("read.refunds", "sandbox.cards")
    def test_of_card_0259_is_opened_two_seconds_after_the_capture(
        self, unpaid: Checkout, pay: Callable[..., Checkout], api: Api
    ) -> None:
        captures.capture(unpaid.merchant, pay(unpaid, DISPUTED).pk, cause=CAUSE)
        hear()
        assert not Dispute.objects.exists()
        before = api.get(f"checkouts/{unpaid.pk}").json()["data"]
        assert "disputes" not in before and before["available_actions"] == ["refund"]
        settling.advance(payments=list(Payment.objects.values_list("pk", flat=True)), seconds=2)
        hear()
        found = Dispute.objects.get()
        assert (found.amount, found.reason, found.status) == (9000, "fraudulent", "open")
        shown = api.get(f"checkouts/{unpaid.pk}").json()["data"]
        assert shown["disputes"] == [
            {
                "dispute_uuid": str(found.pk),
                "amount": 9000,
                "reason": "fraudulent",
                "status": "open",
                "opened_at": clock.iso(found.opened_at),
                "respond_by": clock.iso(found.respond_by),
            }
        ]
        assert (shown["status"], shown["available_actions"]) == ("captured", [])
        listed = api.get("checkouts").json()["data"]["checkouts"]
        assert listed[0]["disputes"] == shown["disputes"]

    @pytest.mark.rule("dispute.booked")
    def test_takes_the_money_back_until_it_is_won(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        assert balances(captured) == {}
        left = Discrepancy.objects.get()
        assert (left.kind, left.subject, left.merchant) == ("disputed", found.pk, captured.merchant)
        assert left.facts["amount"] == 9000
        decide(found, is_won=True)
        assert (found.status, balances(captured)) == ("won", {"provider": 9000, "merchant": -9000})
        left.refresh_from_db()
        assert left.closed_at is not None and left.note == "It was won."
        assert refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE).is_new

    def test_that_is_lost_is_the_merchants_loss(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        decide(found, is_won=False)
        assert (found.status, balances(captured)) == ("lost", {})
        assert [row.kind for row in Discrepancy.objects.filter(closed_at=None)] == ["dispute_lost"]
        captured.refresh_from_db()
        assert captured.status == "captured"
        with pytest.raises(refunds.NotRefundable):
            refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)

    def test_updates_the_time_of_the_checkouts_last_change(self, captured: Checkout) -> None:
        for happens in (dispute, lambda _: decide(Dispute.objects.get(), is_won=True)):
            before = Checkout.objects.values_list("updated_at", flat=True).get()
            happens(captured.payment)
            assert Checkout.objects.values_list("updated_at", flat=True).get() > before
        before = Checkout.objects.values_list("updated_at", flat=True).get()
        inquiries.open_inquiries([captured.payment_id] if captured.payment_id else [])
        tasks.answer_inquiries()
        assert Checkout.objects.values_list("updated_at", flat=True).get() == before, "nothing new"

    @pytest.mark.rule("dispute.booked")
    def test_is_booked_once_for_repeated_notifications(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        with nothing_moves():
            for _ in range(2):
                inquiries.open_inquiries([found.payment_id])
                tasks.answer_inquiries()
        assert Dispute.objects.count() == Discrepancy.objects.count() == 1

    @pytest.mark.rule("dispute.booked")
    def test_is_not_recorded_without_an_entry_in_the_books(self, captured: Checkout) -> None:
        """A message makes the service read the payment, but the bank's books contain no dispute."""
        assert captured.payment_id is not None
        disputing.open_dispute(Charge.objects.get(), seconds=3600)
        with nothing_moves():
            inquiries.open_inquiries([captured.payment_id])
            tasks.answer_inquiries()
        assert not Dispute.objects.exists() and not Inquiry.objects.exists()

    def test_is_read_again_after_the_bank_was_unreachable(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert captured.payment_id is not None
        client.call_bank("dispute", payment=captured.payment_id)
        with monkeypatch.context() as out:
            out.setitem(client.BANK_CALLS, "movements", _unreachable)
            hear()
        assert not Dispute.objects.exists()
        Inquiry.objects.update(due_at=clock.now())
        tasks.answer_inquiries()
        assert Dispute.objects.get().status == "open"

    def test_without_a_notification_is_found_at_night_and_its_decision_within_an_hour(
        self, captured: Checkout
    ) -> None:
        assert captured.payment_id is not None
        client.call_bank("dispute", payment=captured.payment_id)
        reconciliation.run()
        tasks.answer_inquiries()
        found = Dispute.objects.get()
        client.call_bank("decide", payment=captured.payment_id, is_won=True)
        tasks.answer_inquiries()
        found.refresh_from_db()
        assert found.status == "open"
        again_at = Inquiry.objects.get().due_at
        assert clock.now() < again_at <= clock.now() + timedelta(hours=1)
        Inquiry.objects.update(due_at=clock.now())
        tasks.answer_inquiries()
        found.refresh_from_db()
        assert found.status == "won" and not Inquiry.objects.exists()

    @pytest.mark.rule("dispute.booked")
    def test_found_before_the_capture_is_recorded_together_with_it(self, held: Checkout) -> None:
        capture = leave_in_doubt(held)
        bank.capture(key=capture.pk, payment=capture.payment_id)
        dispute(held.payment)
        held.refresh_from_db()
        assert held.status == "captured"
        kinds = Movement.objects.order_by("pk").values_list("kind", flat=True)
        assert list(kinds) == ["captured", "dispute_withdrawn"]

    @pytest.mark.rule("dispute.booked", "sync.capture")
    def test_of_a_dashboard_capture_takes_money_only_after_the_merchants_capture(
        self, held: Checkout
    ) -> None:
        client.call_bank("act_in_dashboard", kind="capture", payment=held.payment_id)
        found = dispute(held.payment)
        assert (found.status, balances(held)) == ("open", {})
        assert captures.capture(held.merchant, held.pk, cause=CAUSE).status == "captured"
        assert balances(held) == {"provider": 9000, "merchant": -9000}
        Inquiry.objects.update(due_at=clock.now())
        tasks.answer_inquiries()
        assert balances(held) == {}

    @pytest.mark.rule("dispute.booked", "sync.capture")
    @pytest.mark.parametrize("is_won", [True, False])
    def test_of_a_dashboard_capture_after_the_hold_lapsed_is_not_in_the_ledger(
        self, held: Checkout, is_won: bool
    ) -> None:
        client.call_bank("act_in_dashboard", kind="capture", payment=held.payment_id)
        make_late(held)
        tasks.expire_due()
        mates.pump(held.pk)
        found = dispute(held.payment)
        decide(found, is_won=is_won)
        held.refresh_from_db()
        assert (held.status, balances(held)) == ("voided", {})
        assert Payment.objects.get().status == "captured"

    @pytest.mark.rule("dispute.lost")
    def test_with_a_reversed_decision_is_updated(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        for is_won in (False, True, False):
            decide(found, is_won=is_won)
            assert found.status == ("won" if is_won else "lost")
            assert balances(captured) == ({"provider": 9000, "merchant": -9000} if is_won else {})
        assert Movement.objects.filter(dispute=found).count() == 3
        assert [row.kind for row in Discrepancy.objects.filter(closed_at=None)] == ["dispute_lost"]

    def test_after_a_refund_is_the_merchants_loss_too(self, captured: Checkout) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk, rounds=2)
        found = dispute(captured.payment)
        decide(found, is_won=False)
        captured.refresh_from_db()
        assert captured.status == "refunded"
        assert balances(captured) == {"provider": -9000, "merchant": 9000}


def dispute_record(**changes: Any) -> DisputeRecord:
    """Return the record of an open dispute of £40.00 in the provider's books."""
    at = clock.now() - timedelta(minutes=5)
    lines = (DisputeLine("txn_1", is_back=False, at=at),)
    record = DisputeRecord("dp_1", 4000, "GBP", "fraudulent", DisputeStatus.OPEN, at, lines=lines)
    return replace(record, **changes)


def record(payment: Payment | None, reported: DisputeRecord) -> disputes.RecordedDispute | None:
    assert payment is not None
    with transaction.atomic():
        return disputes.record_dispute(Payment.objects.get(pk=payment.pk), reported, now=clock.now())


@pytest.mark.rule("dispute.booked")
class TestARecord:
    def test_of_a_line_is_one_movement_posted_under_its_id(self, captured: Checkout) -> None:
        reported = dispute_record()
        assert record(captured.payment, reported) is not None
        moved = Movement.objects.get(kind="dispute_withdrawn")
        assert (moved.amount, moved.reference, moved.occurred_at) == (-4000, "txn_1", reported.lines[0].at)
        lines = Posting.objects.filter(transaction=moved.pk).values_list("account", "amount")
        assert set(lines) == {("provider", -4000), ("merchant", 4000)}

    @pytest.mark.parametrize("currency", ["GBP", "EUR"])
    def test_that_is_repeated_changes_nothing(self, captured: Checkout, currency: str) -> None:
        record(captured.payment, reported := dispute_record(currency=currency))
        with nothing_moves():
            again = record(captured.payment, reported)
        assert again is not None and (again.previous_status, again.has_changed) == ("open", False)

    def test_that_moved_no_money_is_no_dispute(self, captured: Checkout) -> None:
        """A dispute record without balance lines, such as an inquiry, is not recorded as a dispute."""
        assert record(captured.payment, dispute_record(lines=())) is None
        assert not Dispute.objects.exists()

    def test_that_was_won_at_once_has_two_movements(self, captured: Checkout) -> None:
        back = DisputeLine("txn_2", is_back=True, at=clock.now())
        record(
            captured.payment, dispute_record(status=DisputeStatus.WON, lines=(back, *dispute_record().lines))
        )
        moved = Movement.objects.filter(dispute__isnull=False).order_by("pk")
        assert [row.amount for row in moved] == [-4000, 4000], "as they happened, not as they are listed"

    def test_of_lines_with_their_own_amounts_moves_these_amounts(self, captured: Checkout) -> None:
        at = clock.now()
        lines = (DisputeLine("txn_1", False, at, 3000), DisputeLine("txn_2", True, at, 1000))
        record(captured.payment, dispute_record(status=DisputeStatus.LOST, lines=lines))
        moved = Movement.objects.filter(dispute__isnull=False).order_by("pk")
        assert [row.amount for row in moved] == [-3000, 1000]
        (lost,) = disputes.lost_amounts_by_payment(captured.pk).values()
        assert lost.amount == 2000

    def test_of_an_unknown_status_is_open_and_reported(self, captured: Checkout) -> None:
        record(captured.payment, dispute_record(unknown_status="appeal_paused"))
        assert Dispute.objects.get().status == "open"
        left = Discrepancy.objects.get(kind="dispute_status_unknown")
        assert left.facts["theirs"] == "appeal_paused"

    @pytest.mark.parametrize("changes", [{"currency": "EUR"}, {"amount": 9001}])
    def test_of_another_amount_counts_and_is_reported(
        self, captured: Checkout, changes: dict[str, Any]
    ) -> None:
        record(captured.payment, dispute_record(**changes))
        assert disputes.has_open_dispute(captured.pk)
        left = Discrepancy.objects.get(kind="dispute_of_another_amount")
        is_ours = "currency" not in changes
        assert left.facts["theirs"] == ("9001 GBP" if is_ours else "4000 EUR")
        assert Movement.objects.filter(dispute__isnull=False).count() == is_ours

    def test_of_a_second_dispute_is_separate_from_the_first(self, captured: Checkout) -> None:
        assert captured.payment_id is not None
        line = DisputeLine("txn_9", is_back=False, at=clock.now())
        record(captured.payment, dispute_record())
        record(captured.payment, dispute_record(reference="dp_2", amount=1000, lines=(line,)))
        for row, status in zip(Dispute.objects.order_by("created_at"), ("lost", "won"), strict=True):
            Dispute.objects.filter(pk=row.pk).update(status=status, closed_at=clock.now())
        assert disputes.lost_amounts_by_payment(captured.pk)[captured.payment_id].amount == 4000
        assert disputes.has_lost_dispute(captured.pk) and not disputes.has_open_dispute(captured.pk)


def _unreachable(**_: Any) -> Any:
    raise ProviderUnreachable


def test_another_merchant_cannot_see_the_dispute(captured: Checkout, rival: Merchant, rival_api: Api) -> None:
    dispute(captured.payment)
    assert rival_api.get(f"checkouts/{captured.pk}").status_code == 404
    assert rival_api.get("checkouts").json()["data"]["checkouts"] == []


class TestBlockingDispute:
    def test_reads_the_dispute_of_a_row_loaded_without_it(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        assert disputes.blocking_dispute_of_row(captured) == Dispute.objects.get()
        assert found.amount == 9000

    def test_uses_the_dispute_of_a_row_loaded_with_it(self, captured: Checkout) -> None:
        read = disputes.with_disputed(Checkout.objects.all()).get()
        dispute(captured.payment)
        assert disputes.blocking_dispute_of_row(read) is None
        again = disputes.with_disputed(Checkout.objects.all()).get()
        assert disputes.blocking_dispute_of_row(again) == Dispute.objects.get()
