"""A payer asks their bank for the money back: believed when the bank confirms it, booked once, nothing given twice."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils.html import strip_tags
from pytest_django.fixtures import Settings

from checkout import captures, refunds, sharing, tasks
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.outside import disputing
from config.lib import clock
from payments import discrepancies, disputes
from payments.models import Discrepancy, Dispute, Inquiry, Operation, Payment
from payments.outside import inquiries
from payments.provider import CardUse
from payments.providers.sandbox import bank, client, fault_injection, settling
from payments.providers.sandbox.models import Call
from payments.providers.sandbox.models import Dispute as BankDispute
from payments.tasks import WHAT_TO_DO
from portal.models import Role
from portal.orders import order, timeline
from tests import mates
from tests.conftest import Api
from tests.factories import CAUSE, CustomerFactory
from tests.outside import balances, decide, dispute, hear
from tests.portal import stage
from tests.refusals import nothing_moves, refused

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


class TestARefundWhileItStands:
    @pytest.mark.rule("dispute.no_refund")
    def test_is_refused_with_the_dispute(self, captured: Checkout, api: Api) -> None:
        found = dispute(captured.payment)
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
    def test_is_named_by_no_other_conflict(self, captured: Checkout, api: Api) -> None:
        dispute(captured.payment)
        error = refused(api.post(f"checkouts/{captured.pk}/cancel"), 409, "not_cancellable")
        assert error["details"] == [{"status": "captured", "available_actions": []}]

    def test_at_the_bank_is_refused_as_well(self, captured: Checkout) -> None:
        """A refund that was sent before we knew cannot give the money twice."""
        assert captured.payment_id is not None
        client.ask("dispute", payment=captured.payment_id)
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk)
        hear()
        refund = Operation.objects.get(kind="refund")
        assert (refund.state, refund.reason) == ("failed", "charge_disputed")
        captured.refresh_from_db()
        assert captured.status == "captured"


@pytest.mark.rule("dispute.booked", "list.filters")
def test_another_time_to_answer_by_is_a_change_of_the_order(captured: Checkout, api: Api) -> None:
    found = dispute(captured.payment)

    def heard() -> dict[str, Any]:
        inquiries.open_about([found.payment_id])
        tasks.answer_inquiries()
        read: dict[str, Any] = api.get(f"checkouts/{captured.pk}").json()["data"]
        return read

    before = heard()
    assert heard() == before, "the same word once more changes nothing"
    later = clock.now() + timedelta(days=30)
    BankDispute.objects.update(respond_by=later)
    after = heard()
    assert after["disputes"][0]["respond_by"] == clock.iso(later)
    assert after["updated_at"] > before["updated_at"]


@pytest.fixture
def links(unpaid: Checkout, pay: Callable[..., Checkout]) -> list[PaymentRequest]:
    """Two mates are asked for £30 and £20 of £90, and the order is captured."""
    asked = mates.split(unpaid, 3000, 2000)
    captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    return asked


class TestAMatesLink:
    @pytest.mark.rule("share.pauses")
    def test_pauses_while_it_is_open_and_gets_its_time_back(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        unpaid.refresh_from_db()
        found = dispute(unpaid.payment)
        token = bank.tokenise(subject=links[0].pk, number=mates.FINNS)
        with nothing_moves(), pytest.raises(sharing.ShareNotOpen):
            sharing.pay(links[0].pk, card=CardUse(token), mate=CustomerFactory.create(), cause=CAUSE)
        PaymentRequest.objects.update(expires_at=clock.now() - timedelta(minutes=1))
        tasks.end_links()
        assert {row.status for row in PaymentRequest.objects.all()} == {"open"}
        Dispute.objects.update(created_at=clock.now() - timedelta(days=2))
        decide(found, is_won=True)
        assert mates.pay(links[0]).verdict == "succeeded"
        left = PaymentRequest.objects.get(pk=links[1].pk).expires_at
        assert left is not None and left > clock.now() + timedelta(days=1)

    @pytest.mark.rule("share.pauses")
    def test_gets_the_time_of_disputes_that_overlap_back_once(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        found, later = self.both_disputed(unpaid, links)
        earlier(found, created_at=19)
        earlier(later, created_at=3)
        before = end_of(links[1])
        decide(found, is_won=True)
        assert end_of(links[1]) == before, "it is paused as before"
        earlier(found, closed_at=1)
        decide(later, is_won=True)
        assert_gained(links[1], before, timedelta(days=19))

    @pytest.mark.rule("share.pauses")
    def test_gets_no_time_back_twice_of_a_dispute_that_ended_before_the_next(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        found, later = self.both_disputed(unpaid, links)
        decide(found, is_won=True)
        earlier(found, created_at=9, closed_at=4)
        earlier(later, created_at=3)
        before = end_of(links[1])
        decide(later, is_won=True)
        assert_gained(links[1], before, timedelta(days=3))

    @pytest.mark.rule("share.pauses")
    def test_gets_the_time_of_a_refund_that_fails_while_it_is_open_back_once(
        self, unpaid: Checkout, links: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.SANDBOX_REFUND_SECONDS = 60
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk)
        unpaid.refresh_from_db()
        found, before = dispute(unpaid.payment), end_of(links[1])
        Refund.objects.update(created_at=F("created_at") - timedelta(days=5))
        earlier(found, created_at=2)
        Call.objects.filter(kind="refund").update(fails_with="refused", settles_at=clock.now())
        mates.pump(unpaid.pk)
        unpaid.refresh_from_db()
        assert unpaid.status == "captured" and end_of(links[1]) == before
        decide(found, is_won=True)
        assert_gained(links[1], before, timedelta(days=5))

    def both_disputed(self, unpaid: Checkout, links: list[PaymentRequest]) -> tuple[Dispute, Dispute]:
        """The lead disputes her payment, and then the mate who has paid his."""
        mates.pay(links[0])
        mates.settled(links[0])
        unpaid.refresh_from_db()
        return dispute(unpaid.payment), dispute(links[0].payment)

    @pytest.mark.rule("dispute.lost")
    def test_ends_when_it_is_lost(self, unpaid: Checkout, links: list[PaymentRequest]) -> None:
        unpaid.refresh_from_db()
        decide(dispute(unpaid.payment), is_won=False)
        assert {row.status for row in PaymentRequest.objects.all()} == {"cancelled"}

    def test_that_is_being_paid_takes_nothing(self, unpaid: Checkout, links: list[PaymentRequest]) -> None:
        unpaid.refresh_from_db()
        token = bank.tokenise(subject=links[0].pk, number="4000002500003155")
        sharing.pay(links[0].pk, card=CardUse(token), mate=CustomerFactory.create(), cause=CAUSE)
        dispute(unpaid.payment)
        asked = Operation.objects.get(payment__subject=links[0].pk)
        client.ask("answer_challenge", key=asked.pk, is_confirmed=True)
        assert mates.settled(links[0]) == "open"
        assert not Operation.objects.filter(payment__subject=links[0].pk, kind="capture").exists()

    @pytest.mark.rule("dispute.waits")
    def test_whose_card_was_held_before_is_not_taken(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        mates.pay(links[0])
        assert Operation.objects.get(payment__subject=links[0].pk, kind="capture").state == "planned"
        unpaid.refresh_from_db()
        dispute(unpaid.payment)
        assert mates.settled(links[0]) == "open"
        assert not Call.objects.filter(kind="capture", charge__subject=links[0].pk).exists()
        assert "4444" not in mates.borne(unpaid)


class TestAnOldAnswer:
    @pytest.mark.rule("dispute.booked")
    def test_is_not_booked_by_who_was_overtaken(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One process asks and sleeps past its lease; another asks later, and books what is so by then."""
        found = dispute(captured.payment)
        inquiries.open_about([found.payment_id])
        (claim,) = inquiries.claim_about([found.payment_id])
        old = disputes.ask(found.payment_id)
        Inquiry.objects.update(due_at=clock.now())
        decide(found, is_won=True)
        assert found.status == "won"
        monkeypatch.setattr(disputes, "ask", lambda _: old)
        disputing.look_into(claim)
        assert not Discrepancy.objects.filter(kind="dispute_decided_anew").exists()


class TestWhatIsOwedToTheLead:
    @pytest.fixture(autouse=True)
    def _delay(self, settings: Settings) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)

    def paid(self, unpaid: Checkout, links: list[PaymentRequest]) -> None:
        mates.pay(links[0])
        mates.pay(links[1], mates.AMYS)
        for _ in range(3):
            tasks.finish_operations()
        assert {row.status for row in PaymentRequest.objects.all()} == {"paid"}
        unpaid.refresh_from_db()
        assert balances(unpaid)["lead"] == -5000

    @pytest.mark.rule("dispute.waits")
    def test_waits_while_it_is_open_and_goes_on_when_it_is_won(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        self.paid(unpaid, links)
        found = dispute(unpaid.payment)
        mates.pump(unpaid.pk, rounds=3)
        assert not Operation.objects.filter(kind="refund").exclude(reason="withdrawn").exists()
        decide(found, is_won=True)
        mates.pump(unpaid.pk, rounds=3)
        assert {row.status for row in PaymentRequest.objects.all()} == {"reimbursed"}
        assert balances(unpaid) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.rule("dispute.lost")
    def test_is_closed_against_the_dispute_that_the_leads_card_wins(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        self.paid(unpaid, links)
        decide(dispute(unpaid.payment), is_won=False)
        mates.pump(unpaid.pk, rounds=3)
        assert {row.status for row in PaymentRequest.objects.all()} == {"reimbursed"}
        assert balances(unpaid) == {"provider": 5000, "merchant": -5000}, "what the mates have borne is left"

    def test_is_less_by_a_share_that_its_mate_got_back(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        self.paid(unpaid, links)
        links[0].refresh_from_db()
        decide(dispute(links[0].payment), is_won=False)
        mates.pump(unpaid.pk, rounds=3)
        assert statuses() == ["refunded", "reimbursed"]
        assert balances(unpaid) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.rule("dispute.lost")
    def test_is_closed_as_well_when_a_mates_money_comes_after_the_loss(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        fault_injection.set_fault(verb="capture", mode="pending", times=1)
        mates.pay(links[0])
        mates.pump(unpaid.pk)
        unpaid.refresh_from_db()
        decide(dispute(unpaid.payment), is_won=False)
        assert statuses() == ["paying", "cancelled"]
        settling.advance(payments=list(Payment.objects.values_list("pk", flat=True)), seconds=3)
        before = Checkout.objects.values_list("updated_at", flat=True).get()
        mates.pump(unpaid.pk)
        assert statuses() == ["reimbursed", "cancelled"]
        assert balances(unpaid) == {"provider": 3000, "merchant": -3000}
        assert Checkout.objects.values_list("updated_at", flat=True).get() > before
        shown = [entry.title for entry in timeline.of(order.read(unpaid.merchant, unpaid.pk)).entries]
        assert "£30.00 from a mate’s card is kept for the dispute that was lost" in shown
        client = stage.browser(stage.person(unpaid.merchant, Role.OWNER))
        assert "Kept for a lost dispute" in client.get("/portal/balance").content.decode()

    @pytest.mark.rule("dispute.lost")
    def test_is_closed_as_well_when_it_was_on_its_way_and_does_not_arrive(
        self, unpaid: Checkout, links: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(0)
        settings.SANDBOX_REFUND_SECONDS = 60
        mates.pay(links[0])
        mates.pump(unpaid.pk, rounds=2)
        unpaid.refresh_from_db()
        decide(dispute(unpaid.payment), is_won=False)
        assert statuses() == ["paid", "cancelled"], "it may arrive yet"
        discrepancies.report("share_not_reimbursed", links[0].pk)
        PaymentRequest.objects.filter(status="paid").update(paid_at=clock.now() - timedelta(days=4))
        Call.objects.filter(kind="refund").update(fails_with="refused", settles_at=clock.now())
        mates.pump(unpaid.pk)
        assert statuses() == ["reimbursed", "cancelled"]
        assert not Discrepancy.objects.filter(kind="share_not_reimbursed", closed_at=None).exists()
        assert balances(unpaid) == {"provider": 3000, "merchant": -3000}

    @pytest.mark.rule("dispute.lost")
    def test_is_left_for_a_person_where_it_is_more_than_the_dispute_was_about(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        self.paid(unpaid, links)
        client.ask("dispute", payment=unpaid.payment_id)
        BankDispute.objects.update(amount=4000)
        hear()
        decide(Dispute.objects.get(), is_won=False)
        assert statuses() == ["reimbursed", "paid"]
        assert balances(unpaid) == {"provider": 10_000, "merchant": -8000, "lead": -2000}
        told = Discrepancy.objects.get(kind="owed_beyond_dispute")
        assert told.subject == links[1].pk and told.kind in WHAT_TO_DO

    def test_goes_back_to_the_mate_by_the_refund_that_is_under_way(
        self, unpaid: Checkout, links: list[PaymentRequest], settings: Settings
    ) -> None:
        self.paid(unpaid, links)
        settings.SANDBOX_REFUND_SECONDS = 60
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk)
        decide(dispute(unpaid.payment), is_won=False)
        assert statuses() == ["paid", "paid"]
        Call.objects.filter(kind="refund").update(settles_at=clock.now())
        mates.pump(unpaid.pk)
        assert statuses() == ["refunded", "refunded"]

    @pytest.mark.rule("dispute.lost")
    def test_is_nothing_of_a_card_that_says_no_after_the_loss(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        token = bank.tokenise(subject=links[0].pk, number="4000002500003155")
        sharing.pay(links[0].pk, card=CardUse(token), mate=CustomerFactory.create(), cause=CAUSE)
        unpaid.refresh_from_db()
        decide(dispute(unpaid.payment), is_won=False)
        asked = Operation.objects.get(payment__subject=links[0].pk)
        client.ask("answer_challenge", key=asked.pk, is_confirmed=False)
        assert mates.settled(links[0]) == "cancelled", "the links have ended"


def earlier(found: Dispute, **days: int) -> None:
    """Let these times of a dispute lie so many days earlier."""
    moved = {name: F(name) - timedelta(days=count) for name, count in days.items()}
    Dispute.objects.filter(pk=found.pk).update(**moved)


def end_of(link: PaymentRequest) -> datetime:
    link.refresh_from_db()
    assert link.status == "open" and link.expires_at is not None
    return link.expires_at


def assert_gained(link: PaymentRequest, before: datetime, span: timedelta) -> None:
    assert span <= end_of(link) - before < span + timedelta(minutes=1)


def statuses() -> list[str]:
    return list(PaymentRequest.objects.order_by("position").values_list("status", flat=True))


def test_that_is_lost_stands_in_the_portal(captured: Checkout) -> None:
    """Among the movements, and in the timeline with what was posted."""
    decide(dispute(captured.payment), is_won=False)
    client = stage.browser(stage.person(captured.merchant, Role.OWNER))
    assert "Dispute lost" in client.get("/portal/balance").content.decode()
    page = client.get(f"/portal/checkouts/{captured.pk}").content.decode()
    assert "£90.00 from you to what the dispute took" in strip_tags(page)
