"""The bank's test cards and faults have the right outcomes, in the same process and over HTTP."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from checkout import authorizations, cancellations, captures, refunds, tasks
from checkout.models import Checkout
from checkout.proof import ledger_proof
from config.lib import clock
from payments.models import Discrepancy, Operation, Payment
from payments.provider import CardUse
from payments.providers.sandbox import client, fault_injection
from payments.providers.sandbox.models import Call, Charge
from tests.bank import http_client
from tests.factories import CAUSE, make_late
from tests.outages import pump
from tests.payments.providers.sandbox.teller import ASKING, BOTH


@pytest.fixture(params=BOTH, autouse=True)
def _line(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test twice: with the bank in the same process, and with the bank as an HTTP server."""
    if request.param:
        settings.ROOT_URLCONF = "tests.bank.urls"
        http_client.connect(request.getfixturevalue("live_server").url, monkeypatch.setattr)


@pytest.fixture
def no_sleep(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the bank's sleeps. Return a list that collects the seconds for which the bank would have slept."""
    slept: list[float] = []
    monkeypatch.setattr(fault_injection, "time", SimpleNamespace(sleep=slept.append))
    return slept


@pytest.mark.rule("sandbox.cards")
class TestTheCards:
    """The test cards, each with the outcome that the README describes."""

    def test_0341_takes_two_seconds_a_call(
        self, unpaid: Checkout, pay: Callable[..., Checkout], no_sleep: list[float]
    ) -> None:
        held = pay(unpaid, "4000000000000341")
        assert captures.capture(held.merchant, held.pk, cause=CAUSE).status == "captured"
        assert no_sleep == [2, 2]

    def test_6975_is_captured_although_the_response_is_lost(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        held = pay(unpaid, "4000000000006975")
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert Charge.objects.get().state == "captured"
        make_late(held)
        tasks.expire_due()
        pump()
        held.refresh_from_db()
        assert held.status == "authorized", "the bank is silent for two seconds"
        Charge.objects.update(silent_until=clock.now())
        pump()
        held.refresh_from_db()
        assert (held.status, Call.objects.filter(kind="capture").count()) == ("captured", 1)
        assert ledger_proof.find_breaches() == []

    def test_6983_ends_voided_at_the_deadline(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        held = pay(unpaid, "4000000000006983")
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        pump()
        assert Operation.objects.get(kind="capture").state == "unknown"
        make_late(held)
        pump()
        held.refresh_from_db()
        assert (held.status, held.void_reason, held.voided_at) == (
            "voided",
            "auth_expired",
            held.capture_before,
        )
        assert Charge.objects.get().state == "voided" and ledger_proof.find_breaches() == []

    def test_8013_is_voided_at_the_eleventh_time(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        held = pay(unpaid, "4000000000008013")
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        asked = 0
        while Charge.objects.get().state == "held":
            assert Payment.objects.get().status == "authorized"
            pump()
            asked += 1
        # Under each key, the bank answers four times with an error. Then a look-up finds no void, so the next
        # call gets a new key.
        assert (asked, Charge.objects.get().voids_failed) == (12, 10)
        assert Payment.objects.get().status == "voided" and not Discrepancy.objects.exists()
        assert Charge.objects.get().state == "voided"

    @pytest.mark.parametrize(("confirms", "status"), [(True, "authorized"), (False, "created")])
    def test_3155_asks_and_continues_as_the_payer_answers(
        self, unpaid: Checkout, pay: Callable[..., Checkout], confirms: bool, status: str
    ) -> None:
        assert pay(unpaid, ASKING).status == "created"
        asked = Operation.objects.get()
        assert asked.state == "needs_action" and str(asked.pk) in asked.action_url
        client.call_bank("answer_challenge", key=asked.pk, is_confirmed=confirms)
        pump()
        unpaid.refresh_from_db()
        assert (unpaid.status, Operation.objects.get().reason) == (
            status,
            "" if confirms else "challenge_failed",
        )

    def test_3155_keeps_its_return_address_when_it_is_sent_again(self, unpaid: Checkout) -> None:
        fault_injection.set_fault(verb="authorize", mode="down", times=1)
        token = client.call_bank("tokenise", subject=unpaid.pk, number=ASKING)
        card = CardUse(token, "https://pay.example/back")
        authorizations.authorize(unpaid.pk, card=card, lead=None, cause=CAUSE)
        assert not Charge.objects.exists()
        pump()
        assert Operation.objects.get().state == "needs_action"
        assert Charge.objects.get().return_url == card.return_url


@pytest.mark.parametrize("kind", ["void", "refund"])
class TestAnActInDoubt:
    @pytest.mark.parametrize("mode", ["down", "done_then_error", "nonsense"])
    def test_is_repeated_under_its_key_until_it_is_confirmed(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch, kind: str, mode: str
    ) -> None:
        keys: list[UUID] = []
        call = fault_injection.call_with_faults

        def counted(verb: str, arguments: dict[str, Any]) -> Any:
            keys.extend([arguments["key"]] * (verb == kind))
            return call(verb, arguments)

        monkeypatch.setattr(fault_injection, "call_with_faults", counted)
        fault_injection.set_fault(verb=kind, mode=mode, times=3)
        if kind == "void":
            cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        else:
            captures.capture(held.merchant, held.pk, cause=CAUSE)
            refunds.accept(held.merchant, held.pk, ref="r-1", cause=CAUSE)
        for _ in range(6):
            pump()
        used = Operation.objects.get(kind=kind)
        # An error counts as a missing answer. A refund is looked up before it is sent again. If the bank has
        # carried out the first call, the refund is therefore sent only once.
        sent = 1 if kind == "refund" and mode != "down" else 4
        assert (used.state, keys) == ("succeeded", [used.pk] * sent)
        assert Call.objects.get(kind=kind).key == used.pk
        assert Charge.objects.values_list("state", "refunded_amount").get() == (
            ("voided", 0) if kind == "void" else ("captured", 9000)
        )
