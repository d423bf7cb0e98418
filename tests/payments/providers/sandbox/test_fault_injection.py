"""Tests can make the bank fail, in the same process and over HTTP."""

import time
from datetime import timedelta
from uuid import UUID

import orjson
import pytest
from django.conf import settings
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from config.lib import clock
from config.lib.web import http
from payments import provider
from payments.provider import Verdict
from payments.providers.sandbox import client, fault_injection, journal, settling
from payments.providers.sandbox.models import BankNotification, Call, Fault
from tests.payments.providers.sandbox.teller import ACTS, Teller

pytestmark = pytest.mark.usefixtures("both_ways")
BROKEN_OFF = {Fault.Mode.DOWN, Fault.Mode.DONE_THEN_RESET}


def is_no_answer(teller: Teller, kind: str, key: UUID, mode: str) -> bool:
    """Return whether the call gets no usable answer.

    Most faults give no answer. A fault that is an error gives only the bank's error, without an outcome.
    """
    # Over HTTP, Django's test server answers with an error, because it cannot break a connection.
    is_whole = client.bank_address() != settings.BASE_URL and mode in BROKEN_OFF
    if mode in fault_injection.ERROR_MODES or is_whole:
        answer = teller.ask(kind, key, patience=0.2)
        return (answer.verdict, answer.reason) == (Verdict.UNKNOWN, "")
    with pytest.raises((fault_injection.CallFailed, http.NoAnswer, orjson.JSONDecodeError)):
        teller.ask(kind, key, patience=0.2)
    return True


class TestFaults:
    def test_are_set_through_the_client(self) -> None:
        client.call_bank("set_fault", verb="capture", mode="down", times=2)
        assert Fault.objects.values_list("verb", "mode", "times").get() == ("capture", "down", 2)

    @pytest.mark.parametrize(
        "mode",
        sorted(
            (fault_injection.MODES_BEFORE_ACTION | fault_injection.MODES_AFTER_ACTION)
            - fault_injection.REPLAYED_MODES
        ),
    )
    def test_give_no_response_and_the_look_up_reports_the_outcome(self, mode: str) -> None:
        is_done = mode.startswith("done") or mode == "nonsense"
        for kind in ACTS:
            teller, key = Teller(), uuid7()
            teller.carry_out_preceding(kind)
            fault_injection.set_fault(verb=kind, mode=mode, times=1)
            began = time.monotonic()
            assert is_no_answer(teller, kind, key, mode), kind
            assert time.monotonic() - began < 2, kind
            assert (teller.look_up(kind, key).verdict == Verdict.NOT_FOUND) == (not is_done), kind
            assert teller.ask(kind, key).verdict in (Verdict.SUCCEEDED, Verdict.PENDING), kind
            assert Call.objects.filter(key=key).count() == 1
            assert Call.objects.filter(charge=teller.charge(), kind=kind).count() == 1

    def test_an_error_can_be_repeated_under_its_key_for_ever(self) -> None:
        """A fault can store an error under a key. Each repeated call under this key gets the same error.

        A look-up returns the real outcome. If the first call was not carried out, a call under another key
        succeeds.
        """
        for kind in ACTS:
            for mode, is_done in (("replayed_500", False), ("done_replayed_500", True)):
                teller, key = Teller(), uuid7()
                teller.carry_out_preceding(kind)
                fault_injection.set_fault(verb=kind, mode=mode, times=1)
                for _ in range(3):
                    assert is_no_answer(teller, kind, key, mode), kind
                found = teller.look_up(kind, key)
                assert (found.verdict == Verdict.NOT_FOUND) == (not is_done) == found.is_vouched
                if not is_done:
                    assert teller.ask(kind).verdict in (Verdict.SUCCEEDED, Verdict.PENDING)

    @pytest.mark.parametrize("kind", ["capture", "void"])
    @pytest.mark.parametrize(
        ("mode", "seconds", "verdict", "reason"),
        [
            ("pending", 3, Verdict.SUCCEEDED, ""),
            ("pending_then_failed", 3, Verdict.FAILED, "refused_later"),
            ("pending_for_ever", 864_000, Verdict.PENDING, ""),
        ],
    )
    def test_an_operation_can_be_accepted_and_end_later(
        self, kind: str, mode: str, seconds: int, verdict: Verdict, reason: str
    ) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding(kind)
        fault_injection.set_fault(verb=kind, mode=mode, times=1)
        assert [teller.ask(kind, key).verdict for _ in range(2)] == [Verdict.PENDING] * 2
        assert teller.look_up(kind, key).verdict == Verdict.PENDING
        assert (teller.charge().state, BankNotification.objects.count()) == ("held", 0)
        for other in ("capture", "void"):
            assert teller.ask(other).reason == f"{kind}_pending"
        teller.later(seconds)
        settling.settle_due()
        found = teller.look_up(kind, key)
        assert (found.verdict, found.reason) == (verdict, reason)
        done = {"capture": "captured", "void": "voided"}[kind] if verdict == Verdict.SUCCEEDED else "held"
        assert teller.charge().state == done
        assert list(BankNotification.objects.values_list("verdict", flat=True)) == [verdict] * (seconds == 3)

    def test_a_capture_after_a_dashboard_capture_is_refused_and_found_by_a_look_up(self) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding("capture")
        fault_injection.set_fault(verb="capture", mode="already_captured", times=1)
        refused = teller.ask("capture", key)
        assert (refused.verdict, refused.reason) == (Verdict.FAILED, "already_captured")
        found = teller.look_up("capture", key)
        assert (found.verdict, found.amount) == (Verdict.SUCCEEDED, 9000)
        assert teller.charge().state == "captured"

    @pytest.mark.parametrize("kind", ["capture", "refund"])
    def test_a_forgotten_key_is_carried_out_again_and_a_look_up_finds_both(self, kind: str) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding(kind)
        first = teller.ask(kind, key, amount=4000)
        fault_injection.set_fault(verb=kind, mode="forgets_keys", times=1)
        again = teller.ask(kind, key, amount=4000)
        if kind == "refund":
            assert again.verdict == Verdict.PENDING and again.reference != first.reference
            settling.settle_due()
            assert teller.charge().refunded_amount == 8000, "given back twice"
        else:
            assert again.reason == "already_captured"
        assert teller.look_up(kind, key).verdict == Verdict.SUCCEEDED
        assert Call.objects.filter(kind=kind, reference=key).count() == 2

    def test_a_key_is_forgotten_when_its_life_is_over(self, settings: Settings) -> None:
        settings.SANDBOX_KEY_SECONDS = 3600
        assert provider.current_provider().key_life == timedelta(hours=1)
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding("refund")
        teller.ask("refund", key, amount=4000)
        Call.objects.update(created_at=clock.now() - timedelta(minutes=59))
        teller.ask("refund", key, amount=4000)
        assert Call.objects.filter(kind="refund").count() == 1
        Call.objects.update(created_at=clock.now() - timedelta(minutes=61))
        teller.ask("refund", key, amount=4000)
        assert Call.objects.filter(kind="refund", reference=key).count() == 2

    def test_a_look_up_by_only_the_key_proves_nothing(self) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding("refund")
        teller.ask("refund", key)
        journal.forget_key(key, teller.payment.pk)
        fault_injection.set_fault(verb="look_up", mode="not_vouched", times=1)
        missing = teller.look_up("refund", key)
        assert (missing.verdict, missing.is_vouched) == (Verdict.NOT_FOUND, False)
        assert teller.look_up("refund", key).verdict == Verdict.SUCCEEDED

    @pytest.mark.parametrize("kind", ACTS)
    def test_a_success_can_have_garbage_in_its_fields(self, kind: str) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding(kind)
        fault_injection.set_fault(verb=kind, mode="garbage", times=1)
        told = teller.ask(kind, key)
        assert told.reason == told.reference == fault_injection.GARBAGE and len(told.reason) > 4000
        found = teller.look_up(kind, key)
        assert (found.reference, found.reason) == (str(key), "")

    @pytest.mark.parametrize("kind", ACTS)
    def test_an_amount_can_be_a_text(self, kind: str) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding(kind)
        fault_injection.set_fault(verb=kind, mode="no_amount", times=1)
        assert str(teller.ask(kind, key).amount) == "a lot"
        assert teller.look_up(kind, key).amount == 9000

    def test_half_of_the_amount_can_be_held(self) -> None:
        teller = Teller()
        fault_injection.set_fault(verb="authorize", mode="partial_hold", times=1)
        held = teller.ask("authorize")
        assert (held.verdict, held.amount, teller.charge().amount) == (Verdict.SUCCEEDED, 4500, 4500)
        assert teller.ask("void").verdict == Verdict.SUCCEEDED

    @pytest.mark.parametrize(
        ("kind", "mode", "reason"),
        [
            ("void", "void_refused_once", "try_again_later"),
            ("void", "void_refused", "not_permitted"),
            ("refund", "refund_card_closed", "card_account_closed"),
        ],
    )
    def test_a_refusal_is_repeated_for_its_key_only(self, kind: str, mode: str, reason: str) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding(kind)
        fault_injection.set_fault(verb=kind, mode=mode, times=1)
        refused = [teller.ask(kind, key) for _ in range(2)]
        assert [(outcome.verdict, outcome.reason) for outcome in refused] == [(Verdict.FAILED, reason)] * 2
        assert teller.look_up(kind, key) == refused[0]
        assert teller.ask(kind).verdict in (Verdict.SUCCEEDED, Verdict.PENDING)
