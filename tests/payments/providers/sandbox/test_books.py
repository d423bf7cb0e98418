"""The bank's books show each payment correctly, whether they are read in the same process or over HTTP."""

import time
from contextlib import suppress

import pytest
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from config.lib import clock
from config.lib.web import http
from payments import provider, safe_answers
from payments.provider import Books, DisputeStatus, ProviderUnreachable, RefundRecord, Verdict
from payments.providers.sandbox import client, fault_injection
from tests.bank import http_client
from tests.payments.providers.sandbox.teller import PATIENCE, Teller

pytestmark = pytest.mark.usefixtures("both_ways")


def read(teller: Teller) -> Books:
    said = provider.current_provider().movements(teller.payment)
    return safe_answers.safe_books(said, now=clock.now())


def only_refund(teller: Teller) -> RefundRecord:
    (found,) = read(teller).refunds
    return found


class TestBooks:
    def test_follow_a_payment_from_hold_to_refund(self) -> None:
        teller, began = Teller(), clock.now()
        assert read(teller) == Books()
        teller.ask("authorize")
        assert read(teller) == Books(is_held=True)
        taken = teller.ask("capture")
        found = read(teller).capture
        assert found is not None and began <= found.at <= clock.now()
        assert (found.reference, found.amount, found.currency) == (taken.reference, 9000, "GBP")
        assert not read(teller).is_held

    @pytest.mark.parametrize("purpose", ["refund", "share"])
    def test_keep_the_purpose_of_a_refund(self, purpose: str) -> None:
        teller, of = Teller(), uuid7()
        teller.carry_out_preceding("refund")
        operation = teller.operation("refund", amount=4000)
        setattr(operation, f"{purpose}_uuid", of)
        said = provider.current_provider().refund(operation, PATIENCE)
        found = only_refund(teller)
        assert (found.reference, found.operation, found.amount) == (said.reference, operation.pk, 4000)
        assert {"refund": None, "share": None} | {purpose: of} == {
            "refund": found.refund,
            "share": found.share,
        }

    def test_exclude_a_refused_refund(self) -> None:
        teller = Teller()
        teller.carry_out_preceding("refund")
        assert teller.ask("refund", amount=9001).verdict == Verdict.FAILED
        fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=1)
        assert teller.ask("refund", amount=9000).verdict == Verdict.FAILED
        assert read(teller).refunds == ()

    def test_list_a_refund_for_each_time_that_a_forgotten_key_was_sent(self) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding("refund")
        teller.ask("refund", key, amount=4000)
        fault_injection.set_fault(verb="refund", mode="forgets_keys", times=1)
        teller.ask("refund", key, amount=4000)
        first, second = read(teller).refunds
        assert first.operation == second.operation == key and first.reference != second.reference

    def test_settle_due_refunds(self, settings: Settings) -> None:
        settings.SANDBOX_REFUND_SECONDS = 60
        teller = Teller()
        teller.carry_out_preceding("refund")
        teller.ask("refund")
        assert only_refund(teller).verdict == Verdict.PENDING
        teller.later(60)
        assert only_refund(teller).verdict == Verdict.SUCCEEDED


class TestARefundInTheDashboard:
    def test_is_pending_then_settles_and_then_is_returned(self) -> None:
        teller = Teller()
        teller.carry_out_preceding("refund")
        reference = teller.in_dashboard("refund", amount=2500, is_pending=True)
        before, verdicts = clock.now(), []
        for _ in range(2):
            teller.later(864_000)
            found = only_refund(teller)
            verdicts.append((found.verdict, found.has_returned))
            client.call_bank("end_refund", payment=teller.payment.pk, reference=reference)
        found = only_refund(teller)
        verdicts.append((found.verdict, found.has_returned))
        assert verdicts == [
            (Verdict.PENDING, False),
            (Verdict.SUCCEEDED, False),
            (Verdict.FAILED, True),
        ]
        assert (found.reference, found.operation, found.reason) == (reference, None, "card_account_closed")
        assert provider.current_provider().changed(before) == [teller.payment.pk]
        assert teller.charge().refunded_amount == 0

    def test_fails_with_a_reason_before_it_has_settled(self) -> None:
        teller = Teller()
        teller.carry_out_preceding("refund")
        reference = teller.in_dashboard("refund", amount=2500, is_pending=True)
        client.call_bank("end_refund", payment=teller.payment.pk, reference=reference, fails_with="refused")
        found = only_refund(teller)
        assert (found.verdict, found.reason, found.has_returned) == (Verdict.FAILED, "refused", False)
        assert teller.charge().refunded_amount == 0


class TestADispute:
    def test_takes_and_returns_the_money_with_each_decision(self) -> None:
        teller = Teller()
        teller.carry_out_preceding("refund")
        reference = client.call_bank("dispute", payment=teller.payment.pk, amount=4000)
        for is_won in (False, False, True, False, True):
            client.call_bank("decide", payment=teller.payment.pk, is_won=is_won)
        (found,) = read(teller).disputes
        assert (found.reference, found.amount, found.status) == (reference, 4000, DisputeStatus.WON)
        assert [line.is_back for line in found.lines] == [False, True, False, True]
        assert [line.reference for line in found.lines] == [f"{reference}:{n}" for n in (1, 2, 3, 4)]
        assert sorted(line.at for line in found.lines) == [line.at for line in found.lines]

    @pytest.mark.parametrize(("is_won", "moved"), [(True, []), (False, [False])])
    def test_that_is_an_inquiry_takes_no_money_before_it_is_lost(
        self, is_won: bool, moved: list[bool]
    ) -> None:
        teller = Teller()
        teller.carry_out_preceding("refund")
        client.call_bank("dispute", payment=teller.payment.pk, is_inquiry=True)
        (asked,) = read(teller).disputes
        assert (asked.status, asked.lines) == (DisputeStatus.OPEN, ())
        assert teller.ask("refund", amount=1000).verdict == Verdict.PENDING
        client.call_bank("decide", payment=teller.payment.pk, is_won=is_won)
        (decided,) = read(teller).disputes
        assert [line.is_back for line in decided.lines] == moved
        refused = teller.ask("refund", amount=1000).reason
        assert refused == ("" if is_won else "charge_disputed")

    def test_that_took_a_part_and_is_lost_leaves_the_rest_to_refund(self) -> None:
        teller = Teller()
        teller.carry_out_preceding("refund")
        client.call_bank("dispute", payment=teller.payment.pk, amount=4000)
        assert teller.ask("refund", amount=1000).reason == "charge_disputed", "while it is open"
        client.call_bank("decide", payment=teller.payment.pk, is_won=False)
        assert teller.ask("refund", amount=5001).reason == "charge_disputed"
        assert teller.ask("refund", amount=5000).verdict == Verdict.PENDING

    def test_is_decided_by_its_reference_next_to_another(self) -> None:
        teller = Teller()
        teller.carry_out_preceding("refund")
        first = client.call_bank("dispute", payment=teller.payment.pk, amount=4000)
        client.call_bank("dispute", payment=teller.payment.pk, amount=5000)
        client.call_bank("decide", payment=teller.payment.pk, is_won=True, reference=first)
        assert [(row.amount, row.status) for row in read(teller).disputes] == [
            (4000, DisputeStatus.WON),
            (5000, DisputeStatus.OPEN),
        ]
        client.call_bank("decide", payment=teller.payment.pk, is_won=False)
        assert [row.status for row in read(teller).disputes] == [DisputeStatus.WON, DisputeStatus.LOST]


class TestChanged:
    def test_names_each_payment_once_after_a_call_or_a_dispute(self) -> None:
        teller, quiet = Teller(), Teller()
        for each in (teller, quiet):
            each.carry_out_preceding("refund")
        for happens in ("refund", "dispute", "decide"):
            before = clock.now()
            assert provider.current_provider().changed(before) == []
            if happens == "refund":
                teller.ask("refund", amount=1000)
                teller.ask("refund", amount=1000)
            else:
                client.call_bank(
                    happens, payment=teller.payment.pk, **({"is_won": True} if happens == "decide" else {})
                )
            assert provider.current_provider().changed(before) == [teller.payment.pk]

    def test_names_the_payment_of_a_dispute_that_an_advance_has_opened(self) -> None:
        teller = Teller("4000000000000259")
        teller.carry_out_preceding("refund")
        before = clock.now()
        assert read(teller).disputes == () and provider.current_provider().changed(before) == []
        teller.later(600)
        (found,) = read(teller).disputes
        assert found.opened_at >= before and provider.current_provider().changed(before) == [
            teller.payment.pk
        ]
        teller.later(600)
        assert read(teller).disputes[0].lines == found.lines


class TestFaults:
    @pytest.mark.parametrize("mode", ["down", "error", "hang"])
    def test_leave_a_read_without_a_response_in_time(
        self, mode: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client, "HANG_SECONDS", 0.3)
        monkeypatch.setattr(http_client, "SECONDS", 0.3)
        teller = Teller()
        teller.carry_out_preceding("refund")
        fault_injection.set_fault(verb="movements", mode=mode, times=1)
        began = time.monotonic()
        with pytest.raises(ProviderUnreachable):
            read(teller)
        assert time.monotonic() - began < 2
        assert read(teller).capture is not None

    def test_leave_out_recent_entries_once(self) -> None:
        teller = Teller()
        teller.carry_out_preceding("refund")
        teller.ask("refund", amount=1000)
        client.call_bank("dispute", payment=teller.payment.pk)
        fault_injection.set_fault(verb="movements", mode="stale", times=1)
        assert read(teller) == Books()
        found = read(teller)
        assert (len(found.refunds), len(found.disputes)) == (1, 1) and found.capture is not None

    def test_make_the_books_unreachable_while_the_bank_hides_its_charge(self) -> None:
        teller = Teller("4000000000006975")
        teller.ask("authorize")
        with suppress(fault_injection.CallFailed, http.NoAnswer):
            teller.ask("capture")
        with pytest.raises(ProviderUnreachable):
            read(teller)
        teller.later(3)
        assert read(teller).capture is not None
