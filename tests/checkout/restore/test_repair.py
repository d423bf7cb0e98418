"""After a restore, the repair brings orders that changed after the backup up to date, from the bank's books."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from checkout import cancellations, captures, tasks
from checkout.models import Checkout
from checkout.proof import ledger_proof
from checkout.restore import repair
from checkout.syncing import sync
from config.lib import clock
from payments import restore_guard
from payments.models import Discrepancy, Merchant, Operation, Payment
from payments.provider import ProviderUnreachable
from payments.providers.sandbox import bank, client, journal
from payments.providers.sandbox.models import Charge
from tests import factories, mates
from tests.factories import CAUSE
from tests.outages import InDoubt
from tests.restoring import Backup, anew, borne, nothing_moves_later, repaired, told

pytestmark = [pytest.mark.django_db, pytest.mark.rule("restore.repair")]
Pay = Callable[..., Checkout]


class TestACaptureThatWasLost:
    def test_is_restored_and_never_reported_as_voided(self, held: Checkout, began: datetime) -> None:
        backup = Backup()
        captures.capture(held.merchant, held.pk, cause=CAUSE)
        backup.restore()
        factories.make_late(held)
        assert anew(held).status == "authorized"
        repaired(began)
        tasks.expire_due()
        assert anew(held).status == "captured"
        again = captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert again.status == "captured" and "checkout.voided" not in told(held)
        capture = Operation.objects.get(payment=held.payment, kind="capture")
        assert (capture.state, capture.attempts) == ("succeeded", 2)
        nothing_moves_later(held)

    def test_is_restored_together_with_its_hold_and_payment(
        self, unpaid: Checkout, pay: Pay, began: datetime
    ) -> None:
        backup = Backup()
        paid = pay(unpaid)
        captures.capture(paid.merchant, paid.pk, cause=CAUSE)
        backup.restore()
        assert not Payment.objects.exists()
        done = repaired(began)
        assert done.payments == 1
        restored = anew(unpaid)
        assert restored.status == "captured" and restored.payment_id == paid.payment_id
        assert restored.payment and restored.payment.card_last4 == "4242"
        assert captures.capture(paid.merchant, paid.pk, cause=CAUSE).status == "captured"
        nothing_moves_later(unpaid)

    @pytest.mark.rule("restore.open")
    def test_whose_outcome_was_still_unknown(self, in_doubt: InDoubt, began: datetime) -> None:
        """The bank captured after the backup, and a look-up now finds the capture."""
        capture = in_doubt("capture")
        backup = Backup()
        mates.pump(capture.payment.checkout_uuid)
        order = Checkout.objects.get(pk=capture.payment.checkout_uuid)
        assert order.status == "captured"
        backup.restore()
        assert anew(order).status == "authorized"
        repaired(began)
        assert anew(order).status == "captured"

    @pytest.mark.rule("restore.open")
    def test_after_a_challenge_that_was_open(self, unpaid: Checkout, pay: Pay, began: datetime) -> None:
        pay(unpaid, mates.CHALLENGED)
        backup = Backup()
        asked = Operation.objects.get(kind="authorize")
        bank.answer_challenge(key=asked.pk, is_confirmed=True)
        mates.pump(unpaid.pk)
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        backup.restore()
        assert anew(unpaid).status == "created"
        repaired(began)
        assert anew(unpaid).status == "captured"
        nothing_moves_later(unpaid)


class TestTwoCardsForOneOrder:
    def test_the_captured_card_counts(self, unpaid: Checkout, pay: Pay, began: datetime) -> None:
        """When the backup was made, the first card waited for confirmation. Later, the payer used another card."""
        pay(unpaid, mates.CHALLENGED)
        backup = Backup()
        paid = pay(unpaid, "5555555555554444")
        captures.capture(paid.merchant, paid.pk, cause=CAUSE)
        backup.restore()
        repaired(began)
        order = anew(unpaid)
        assert order.status == "captured" and order.payment and order.payment.card_last4 == "4444"
        nothing_moves_later(order)
        assert not Discrepancy.objects.filter(kind="unknown_order").exists()


class TestARepairThatBrokeOff:
    def test_restarts_from_its_original_start_time(
        self, held: Checkout, acme: Merchant, pay: Pay, began: datetime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = pay(factories.checkout(acme), "5555555555554444")
        backup = Backup()
        for order in (held, other):
            captures.capture(acme, order.pk, cause=CAUSE)
        backup.restore()
        follow, done = sync.sync, list[UUID]()

        def once(payment_uuid: UUID, *, is_restored: bool) -> bool:
            if done:
                raise KeyboardInterrupt
            done.append(payment_uuid)
            return follow(payment_uuid, is_restored=is_restored)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(sync, "sync", once)
            repair.repair(began)
        assert restore_guard.is_closed()
        repair.repair(clock.now() + timedelta(minutes=1))
        assert {anew(held).status, anew(other).status} == {"captured"} and ledger_proof.find_breaches() == []


def test_a_payment_gets_its_lost_provider_reference_back(
    held: Checkout, began: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = replace(journal.payment_record(Charge.objects.get()), reference="pi_1", place="acct_1")
    monkeypatch.setitem(client.BANK_CALLS, "payments", lambda since: [told])
    Backup().restore()
    repaired(began)
    payment = Payment.objects.get()
    assert (payment.provider_reference, payment.provider_account) == ("pi_1", "acct_1")


def test_a_lost_successful_capture_overrides_an_earlier_failed_one(held: Checkout, began: datetime) -> None:
    backup = Backup()
    captures.capture(held.merchant, held.pk, cause=CAUSE)
    assert held.payment
    backup.restore()
    ended = clock.now() - timedelta(minutes=1)
    facts = {"kind": "capture", "amount": 9000, "state": "failed", "reason": "refused", "actor": "pump"}
    Operation.objects.create(payment=held.payment, created_at=ended, ended_at=ended, **facts)
    repaired(began)
    assert anew(held).status == "captured"


class TestAHoldThatWasNotCaptured:
    def test_is_released_and_its_order_can_be_paid_again(
        self, unpaid: Checkout, pay: Pay, began: datetime
    ) -> None:
        backup = Backup()
        pay(unpaid)
        backup.restore()
        done = repaired(began)
        assert done.payments == 1
        assert anew(unpaid).status == "created" and told(unpaid) == []
        mates.pump(unpaid.pk)
        assert Charge.objects.get().state == "voided"
        again = pay(unpaid, "5555555555554444")
        assert again.status == "authorized"
        assert captures.capture(again.merchant, again.pk, cause=CAUSE).status == "captured"

    def test_that_was_in_the_backup_lapses_as_usual(self, held: Checkout, began: datetime) -> None:
        backup = Backup()
        backup.restore()
        factories.make_late(held)
        repaired(began)
        tasks.expire_due()
        assert anew(held).status == "voided"

    def test_that_was_cancelled_is_recorded_as_voided_by_the_merchant(
        self, held: Checkout, began: datetime
    ) -> None:
        backup = Backup()
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        mates.pump(held.pk)
        backup.restore()
        repaired(began)
        order = anew(held)
        assert (order.status, order.void_reason) == ("voided", "merchant_cancel")
        assert cancellations.cancel(held.merchant, held.pk, cause=CAUSE).status == "voided"

    def test_that_was_released_leaves_the_order_unpaid_if_the_payment_was_lost(
        self, unpaid: Checkout, pay: Pay, began: datetime
    ) -> None:
        backup = Backup()
        paid = pay(unpaid)
        cancellations.cancel(paid.merchant, paid.pk, cause=CAUSE)
        mates.pump(paid.pk)
        backup.restore()
        repaired(began)
        assert anew(unpaid).status == "created"
        nothing_moves_later(unpaid)
        assert not Operation.objects.filter(ended_at=None).exists()


@pytest.mark.rule("restore.unknown_orders")
class TestAnOrderThatIsNotInOurBooks:
    def test_is_reported_and_never_changed(self, acme: Merchant, pay: Pay, began: datetime) -> None:
        backup = Backup()
        order = pay(factories.checkout(acme))
        captures.capture(acme, order.pk, cause=CAUSE)
        backup.restore()
        done = repaired(began)
        found = Discrepancy.objects.get(closed_at=None)
        assert (found.kind, found.merchant, found.facts["amount"]) == ("unknown_order", acme, order.amount)
        assert done.unknown == {found.subject} and done.written == 0
        tasks.finish_operations()
        assert borne() == {"4242": order.amount}

    def test_is_not_matched_to_another_merchants_order(
        self, acme: Merchant, rival: Merchant, unpaid: Checkout, pay: Pay, began: datetime
    ) -> None:
        backup = Backup()
        paid = pay(unpaid)
        captures.capture(paid.merchant, paid.pk, cause=CAUSE)
        Charge.objects.update(account=rival.pk)
        backup.restore()
        repair.repair(began)
        assert anew(unpaid).status == "created" and not Payment.objects.exists()
        assert Discrepancy.objects.get(kind="unknown_order").merchant == rival


@pytest.mark.rule("restore.unknown_orders")
class TestAnAccountAtTheProvider:
    """An account's owner can write any data into it, so payments from another merchant's account are ignored."""

    def lost(
        self, unpaid: Checkout, pay: Pay, began: datetime, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> repair.Repair:
        backup = Backup()
        paid = pay(unpaid)
        captures.capture(paid.merchant, paid.pk, cause=CAUSE)
        told = replace(journal.payment_record(Charge.objects.get()), reference="pi_1", place=place)
        monkeypatch.setitem(client.BANK_CALLS, "payments", lambda since: [told])
        backup.restore()
        return repair.repair(began)

    def test_of_another_merchant_is_ignored(
        self, unpaid: Checkout, pay: Pay, began: datetime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done = self.lost(unpaid, pay, began, monkeypatch, "acct_stranger")
        assert (done.payments, anew(unpaid).status) == (0, "created")
        assert not Payment.objects.exists()
        assert Discrepancy.objects.get(kind="unknown_order").facts["order"] == str(unpaid.pk)

    @pytest.mark.parametrize("is_former", [False, True])
    def test_that_is_or_was_the_merchants_is_accepted(
        self, unpaid: Checkout, pay: Pay, began: datetime, monkeypatch: pytest.MonkeyPatch, is_former: bool
    ) -> None:
        Merchant.objects.filter(pk=unpaid.merchant_id).update(provider_account="acct_1")
        if is_former:
            Merchant.objects.filter(pk=unpaid.merchant_id).update(provider_account="acct_2")
        done = self.lost(unpaid, pay, began, monkeypatch, "acct_1")
        assert (done.payments, anew(unpaid).status) == (1, "captured")
        assert Payment.objects.get().provider_account == "acct_1"


@pytest.mark.rule("restore.closed")
class TestTheCommand:
    def run(self, *arguments: str) -> str:
        said = StringIO()
        call_command("reconcile", "--repair", *arguments, stdout=said)
        return said.getvalue()

    def test_opens_the_database_and_reports_what_it_did(self, unpaid: Checkout, pay: Pay) -> None:
        backup = Backup()
        paid = pay(unpaid)
        captures.capture(paid.merchant, paid.pk, cause=CAUSE)
        backup.restore()
        said = self.run()
        assert "1 payments recorded again, 1 synchronised." in said
        assert (
            "0 payments belong to orders that the database does not have" in said
            and not restore_guard.is_closed()
        )

    def test_changes_nothing_if_the_database_is_open(self, held: Checkout) -> None:
        with pytest.raises(CommandError, match="was not restored"):
            self.run()

    def test_leaves_the_database_closed_while_the_provider_is_silent_and_continues_later(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        backup = Backup()
        captures.capture(held.merchant, held.pk, cause=CAUSE)
        backup.restore()

        def raise_unreachable(verb: str, /, **_: object) -> object:
            raise ProviderUnreachable

        with monkeypatch.context() as patch:
            patch.setattr(client, "call_bank", raise_unreachable)
            with pytest.raises(CommandError, match="stays closed"):
                self.run()
        assert restore_guard.is_closed() and anew(held).status == "authorized"
        self.run()
        assert anew(held).status == "captured"


@pytest.mark.rule("restore.repair")
def test_a_share_paid_and_reimbursed_in_the_lost_time_is_not_a_surplus(
    unpaid: Checkout, pay: Callable[..., Checkout]
) -> None:
    """The repair finds the lead's reimbursement before it finds the payment that was reimbursed."""
    (share,) = mates.split(unpaid, 3000)
    captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    backup, began = Backup(), clock.now()
    mates.pay(share)
    assert mates.settled(share) == "reimbursed"
    backup.restore()
    repaired(began)
    share.refresh_from_db()
    assert share.status == "reimbursed"
    assert not Discrepancy.objects.filter(kind="card_got_too_much").exists()


@pytest.mark.rule("restore.failed")
class TestAPaymentThatCannotBeRead:
    @pytest.fixture
    def other(self, acme: Merchant, held: Checkout, pay: Pay) -> Checkout:
        """Return a second order. Both orders are captured after the backup."""
        other = pay(factories.checkout(acme), "5555555555554444")
        backup = Backup()
        for order in (held, other):
            captures.capture(acme, order.pk, cause=CAUSE)
        backup.restore()
        return other

    @pytest.fixture
    def unreadable(self, held: Checkout, other: Checkout) -> Iterator[pytest.MonkeyPatch]:
        """Make the books of the first order's payment unreadable until the patch is undone."""
        read_books = client.BANK_CALLS["movements"]

        def fail_for_one(payment: UUID) -> object:
            if payment == held.payment_id:
                raise ValueError(payment)
            return read_books(payment=payment)

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(client.BANK_CALLS, "movements", fail_for_one)
            yield patch

    def test_keeps_the_service_closed_but_the_others_are_repaired(
        self, held: Checkout, other: Checkout, began: datetime, unreadable: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(CommandError, match="stays closed"):
            call_command("reconcile", "--repair", "--since-hours", "1", stdout=StringIO())
        assert restore_guard.is_closed()
        assert (anew(held).status, anew(other).status) == ("authorized", "captured")
        assert Discrepancy.objects.get(kind="not_repaired", closed_at=None).subject == held.payment_id
        unreadable.undo()
        repaired(began)
        assert anew(held).status == "captured"
        assert not Discrepancy.objects.filter(kind="not_repaired", closed_at=None).exists()

    def test_is_repaired_later_if_an_operator_opens_the_service_without_it(
        self, held: Checkout, began: datetime, unreadable: pytest.MonkeyPatch
    ) -> None:
        assert held.payment_id is not None
        output = StringIO()
        call_command("reconcile", "--repair", "--open-without", str(held.payment_id), stdout=output)
        assert "The service is open." in output.getvalue() and not restore_guard.is_closed()
        assert Discrepancy.objects.filter(kind="not_repaired", closed_at=None).exists()
        unreadable.undo()
        tasks.answer_inquiries()
        assert anew(held).status == "captured"
        assert not Discrepancy.objects.filter(closed_at=None).exists()
        nothing_moves_later(held)

    def test_stops_the_repair_if_too_many_others_fail_too(
        self, began: datetime, unreadable: pytest.MonkeyPatch
    ) -> None:
        unreadable.setattr(repair, "MAX_FAILED", 0)
        with pytest.raises(ValueError, match="-"):
            repair.repair(began)
        assert restore_guard.is_closed()
