"""Disputes are recorded once the bank's books confirm them, and no money is refunded twice."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils.html import strip_tags
from pytest_django.fixtures import Settings

from checkout import mate_shares, refunds, tasks
from checkout.models import Checkout, PaymentRequest, Refund
from config.lib import clock
from payments.models import Discrepancy, Dispute, Movement, Operation
from payments.provider import CardUse
from payments.providers.sandbox import bank, client
from payments.providers.sandbox.models import Call
from payments.providers.sandbox.models import Dispute as BankDispute
from portal.models import Role
from tests import mates
from tests.conftest import Api
from tests.factories import CAUSE, CustomerFactory
from tests.outside import ask_about, balances, decide, dispute, hear
from tests.portal import stage
from tests.refusals import nothing_moves, refused

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


class TestARefundDuringADispute:
    @pytest.mark.rule("dispute.no_refund")
    def test_is_refused_and_the_response_names_the_dispute(self, captured: Checkout, api: Api) -> None:
        found = dispute(captured.payment)
        # A lost dispute takes the whole amount, so no amount is left to refund.
        for status in ("open", "lost"):
            with nothing_moves():
                answer = api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r-1"})
            error = refused(answer, 409, "not_refundable")
            (detail,) = error["details"]
            assert (detail["status"], detail["available_actions"]) == ("captured", [])
            assert detail["dispute"]["dispute_uuid"] == str(found.pk)
            assert detail["dispute"]["status"] == status
            if status == "open":
                decide(found, is_won=False)

    @pytest.mark.rule("api.conflict")
    def test_is_the_only_conflict_that_names_the_dispute(self, captured: Checkout, api: Api) -> None:
        dispute(captured.payment)
        error = refused(api.post(f"checkouts/{captured.pk}/cancel"), 409, "not_cancellable")
        assert error["details"] == [{"status": "captured", "available_actions": []}]

    def test_that_was_already_sent_is_refused_by_the_bank(self, captured: Checkout) -> None:
        """If a refund was sent before the service knew of the dispute, it cannot refund the money twice."""
        assert captured.payment_id is not None
        client.call_bank("dispute", payment=captured.payment_id)
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk)
        hear()
        refund = Operation.objects.get(kind="refund")
        assert (refund.state, refund.reason) == ("failed", "charge_disputed")
        captured.refresh_from_db()
        assert captured.status == "captured"


@pytest.mark.rule("dispute.booked", "list.filters")
def test_a_new_evidence_deadline_counts_as_a_change_of_the_order(captured: Checkout, api: Api) -> None:
    found = dispute(captured.payment)

    def read_again() -> dict[str, Any]:
        ask_about(found.payment)
        read: dict[str, Any] = api.get(f"checkouts/{captured.pk}").json()["data"]
        return read

    before = read_again()
    assert read_again() == before, "the same word once more changes nothing"
    later = clock.now() + timedelta(days=30)
    BankDispute.objects.update(respond_by=later)
    after = read_again()
    assert after["disputes"][0]["respond_by"] == clock.iso(later)
    assert after["updated_at"] > before["updated_at"]


class TestAMatesLink:
    @pytest.mark.rule("share.pauses")
    def test_pauses_during_a_dispute_and_is_extended_after_it(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        unpaid.refresh_from_db()
        found = dispute(unpaid.payment)
        token = bank.tokenise(subject=links[0].pk, number=mates.FINNS)
        with nothing_moves(), pytest.raises(mate_shares.ShareNotOpen):
            mate_shares.pay(links[0].pk, card=CardUse(token), mate=CustomerFactory.create(), cause=CAUSE)
        PaymentRequest.objects.update(expires_at=clock.now() - timedelta(minutes=1))
        tasks.end_links()
        assert {row.status for row in PaymentRequest.objects.all()} == {"open"}
        Dispute.objects.update(created_at=clock.now() - timedelta(days=2))
        decide(found, is_won=True)
        assert mates.pay(links[0]).verdict == "succeeded"
        left = PaymentRequest.objects.get(pk=links[1].pk).expires_at
        assert left is not None and left > clock.now() + timedelta(days=1)

    @pytest.mark.rule("share.pauses")
    def test_is_extended_once_for_overlapping_disputes(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        found, later = self.both_disputed(unpaid, links)
        move_times_back(found, created_at=19)
        move_times_back(later, created_at=3)
        before = end_of(links[1])
        decide(found, is_won=True)
        assert end_of(links[1]) == before, "it is paused as before"
        move_times_back(found, closed_at=1)
        decide(later, is_won=True)
        assert_gained(links[1], before, timedelta(days=19))

    @pytest.mark.rule("share.pauses")
    def test_is_extended_for_a_later_dispute_by_its_own_time_only(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        found, later = self.both_disputed(unpaid, links)
        decide(found, is_won=True)
        move_times_back(found, created_at=9, closed_at=4)
        move_times_back(later, created_at=3)
        before = end_of(links[1])
        decide(later, is_won=True)
        assert_gained(links[1], before, timedelta(days=3))

    @pytest.mark.rule("share.pauses")
    def test_is_extended_once_for_a_refund_that_fails_during_a_dispute(
        self, unpaid: Checkout, links: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.SANDBOX_REFUND_SECONDS = 60
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk)
        unpaid.refresh_from_db()
        found, before = dispute(unpaid.payment), end_of(links[1])
        Refund.objects.update(created_at=F("created_at") - timedelta(days=5))
        move_times_back(found, created_at=2)
        Call.objects.filter(kind="refund").update(fails_with="refused", settles_at=clock.now())
        mates.pump(unpaid.pk)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunding" and end_of(links[1]) == before, "the bank decides first"
        decide(found, is_won=True)
        unpaid.refresh_from_db()
        assert unpaid.status == "captured"
        assert_gained(links[1], before, timedelta(days=5))

    def both_disputed(self, unpaid: Checkout, links: list[PaymentRequest]) -> tuple[Dispute, Dispute]:
        """Let the mate pay his share. Then the lead and the mate both dispute their payments."""
        mates.pay(links[0])
        mates.settled(links[0])
        unpaid.refresh_from_db()
        return dispute(unpaid.payment), dispute(links[0].payment)

    @pytest.mark.rule("dispute.lost")
    def test_ends_when_it_is_lost(self, unpaid: Checkout, links: list[PaymentRequest]) -> None:
        unpaid.refresh_from_db()
        decide(dispute(unpaid.payment), is_won=False)
        assert {row.status for row in PaymentRequest.objects.all()} == {"cancelled"}

    def test_with_an_unconfirmed_card_takes_no_money(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        unpaid.refresh_from_db()
        token = bank.tokenise(subject=links[0].pk, number="4000002500003155")
        mate_shares.pay(links[0].pk, card=CardUse(token), mate=CustomerFactory.create(), cause=CAUSE)
        dispute(unpaid.payment)
        asked = Operation.objects.get(payment__subject=links[0].pk)
        client.call_bank("answer_challenge", key=asked.pk, is_confirmed=True)
        assert mates.settled(links[0]) == "open"
        assert not Operation.objects.filter(payment__subject=links[0].pk, kind="capture").exists()

    @pytest.mark.rule("dispute.waits")
    def test_with_a_held_card_takes_no_money(self, unpaid: Checkout, links: list[PaymentRequest]) -> None:
        mates.pay(links[0])
        assert Operation.objects.get(payment__subject=links[0].pk, kind="capture").state == "planned"
        unpaid.refresh_from_db()
        dispute(unpaid.payment)
        assert mates.settled(links[0]) == "open"
        assert not Call.objects.filter(kind="capture", charge__subject=links[0].pk).exists()
        assert "4444" not in mates.borne(unpaid)


def move_times_back(dispute: Dispute, **days: int) -> None:
    """Move the named times of a dispute into the past, each by its own number of days."""
    moved = {name: F(name) - timedelta(days=count) for name, count in days.items()}
    Dispute.objects.filter(pk=dispute.pk).update(**moved)


def end_of(link: PaymentRequest) -> datetime:
    link.refresh_from_db()
    assert link.status == "open" and link.expires_at is not None
    return link.expires_at


def assert_gained(link: PaymentRequest, before: datetime, span: timedelta) -> None:
    assert span <= end_of(link) - before < span + timedelta(minutes=1)


def test_a_lost_dispute_is_shown_in_the_portal(captured: Checkout) -> None:
    """The dispute appears in the list of movements and in the checkout's timeline."""
    decide(dispute(captured.payment), is_won=False)
    client = stage.browser(stage.person(captured.merchant, Role.OWNER))
    assert "in a dispute" in " ".join(strip_tags(client.get("/portal/balance").content.decode()).split())
    page = client.get(f"/portal/checkouts/{captured.pk}").content.decode()
    assert "The dispute over £90.00 is lost" in strip_tags(page)


class TestRecordedDispute:
    """The records of a dispute. See also tests/payments/test_disputes.py."""

    @pytest.mark.rule("dispute.booked")
    def test_has_each_line_of_the_balance_once(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        for is_won in (True, False, True):
            decide(found, is_won=is_won)
            ask_about(captured.payment)
        kinds = Movement.objects.filter(dispute=found).order_by("pk").values_list("kind", "amount")
        taken, given = ("dispute_withdrawn", -9000), ("dispute_reinstated", 9000)
        assert list(kinds) == [taken, given, taken, given]
        assert balances(captured) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.rule("dispute.booked")
    def test_excludes_an_inquiry_that_moved_no_money(self, captured: Checkout) -> None:
        client.call_bank("dispute", payment=captured.payment_id, is_inquiry=True)
        with nothing_moves():
            hear()
        assert not Dispute.objects.exists() and not Discrepancy.objects.exists()

    @pytest.mark.rule("dispute.booked")
    def test_counts_as_open_if_its_status_is_not_known(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client.call_bank("dispute", payment=captured.payment_id)
        books = client.call_bank("movements", payment=captured.payment_id)
        (told,) = books.disputes
        strange = replace(books, disputes=[replace(told, unknown_status="in_mediation")])
        monkeypatch.setitem(client.BANK_CALLS, "movements", lambda payment: strange)
        ask_about(captured.payment)
        assert Dispute.objects.get().status == "open"
        found = Discrepancy.objects.get(kind="dispute_status_unknown")
        assert found.facts["theirs"] == "in_mediation"

    @pytest.mark.rule("dispute.booked")
    @pytest.mark.parametrize("change", [{"amount": 9001}, {"currency": "EUR"}])
    def test_of_another_amount_stops_refunds_and_is_reported(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
    ) -> None:
        client.call_bank("dispute", payment=captured.payment_id)
        books = client.call_bank("movements", payment=captured.payment_id)
        strange = replace(books, disputes=[replace(books.disputes[0], **change)])
        monkeypatch.setitem(client.BANK_CALLS, "movements", lambda payment: strange)
        ask_about(captured.payment)
        assert Dispute.objects.get().status == "open"
        assert Discrepancy.objects.filter(kind="dispute_of_another_amount").count() == 1
        with pytest.raises(refunds.NotRefundable):
            refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)

    def test_during_a_refund_is_reported(self, captured: Checkout, settings: Settings) -> None:
        settings.SANDBOX_REFUND_SECONDS = 60
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk)
        dispute(captured.payment)
        assert Discrepancy.objects.filter(kind="disputed_while_refunding").count() == 1
