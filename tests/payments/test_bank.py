"""The sandbox bank fulfils the port's contract, and goes wrong on request, alike in process and over HTTP."""

import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import orjson
import pytest
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from config.lib import clock, http
from payments import provider
from payments.models import Merchant, Operation, Payment
from payments.provider import CardUse, Outcome, Verdict
from payments.providers.sandbox import bank, line, misbehaving, views
from payments.providers.sandbox.models import Call, Charge, Fault

PATIENCE = 5.0
VISA, ASKING = "4242424242424242", "4000002500003155"
ACTS = ["authorize", "capture", "void", "refund"]


class Teller:
    """One card's money at the bank, over the line that the settings name."""

    def __init__(self, number: str = VISA) -> None:
        merchant = Merchant(pk=uuid7())
        self.payment = Payment(
            pk=uuid7(), merchant=merchant, subject=uuid7(), checkout_uuid=uuid7(), amount=9000, currency="GBP"
        )
        self.token = str(line.ask("tokenise", subject=self.payment.subject, number=number))

    def operation(self, kind: str, key: UUID | None = None, amount: int = 9000) -> Operation:
        return Operation(pk=key or uuid7(), payment=self.payment, kind=kind, amount=amount)

    def ask(
        self, kind: str, key: UUID | None = None, amount: int = 9000, patience: float = PATIENCE
    ) -> Outcome:
        peer, operation = provider.current(), self.operation(kind, key, amount)
        if kind == "authorize":
            return peer.authorize(operation, CardUse(self.token, "https://pay.example/back"), patience)
        act: Callable[[Operation, float], Outcome] = getattr(peer, kind)
        return act(operation, patience)

    def before(self, kind: str) -> None:
        """Bring the money to where an act of this kind is due."""
        if kind != "authorize":
            self.ask("authorize")
        if kind == "refund":
            self.ask("capture")

    def charge(self) -> Charge:
        return Charge.objects.get(payment=self.payment.pk)


BOTH = [
    pytest.param(False, marks=pytest.mark.django_db, id="in process"),
    pytest.param(True, marks=[pytest.mark.django_db(transaction=True), pytest.mark.long], id="over HTTP"),
]


@pytest.fixture(params=BOTH, autouse=True)
def _line(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs twice: the bank is called, and it is a peer on a socket."""
    monkeypatch.setattr(views, "HANG_SECONDS", 0.4)
    if request.param:
        settings.BANK_URL = request.getfixturevalue("live_server").url


class TestTheContract:
    @pytest.mark.parametrize("kind", ACTS)
    def test_one_key_has_one_answer_and_one_effect(self, kind: str) -> None:
        teller, key = Teller(), uuid7()
        teller.before(kind)
        first = teller.ask(kind, key)
        assert first.verdict == (Verdict.PENDING if kind == "refund" else Verdict.SUCCEEDED)
        assert (first.amount, first.reference) == (9000, str(key))
        assert first.card is not None and (first.card.brand, first.card.last4) == ("Visa", "4242")
        assert [teller.ask(kind, key) for _ in range(2)] == [first] * 2
        assert Call.objects.filter(kind=kind).count() == 1
        assert Charge.objects.count() == 1

    def test_a_look_up_repeats_the_answer_or_knows_of_none(self) -> None:
        teller, key = Teller(), uuid7()
        held = teller.ask("authorize", key)
        assert teller.ask("look_up", key) == held
        assert teller.ask("look_up", uuid7()).verdict == Verdict.NOT_FOUND

    def test_what_is_released_is_not_taken_nor_the_reverse(self) -> None:
        released, taken = Teller(), Teller()
        for teller, act in ((released, "void"), (taken, "capture")):
            teller.ask("authorize")
            teller.ask(act)
        refused = released.ask("capture"), taken.ask("void"), taken.ask("capture")
        assert [(outcome.verdict, outcome.reason) for outcome in refused] == [
            (Verdict.FAILED, "already_voided"),
            (Verdict.FAILED, "already_captured"),
            (Verdict.FAILED, "already_captured"),
        ]
        assert (released.charge().state, taken.charge().state) == ("voided", "captured")

    @pytest.mark.parametrize("kind", ["capture", "void", "refund"])
    def test_of_money_that_it_does_not_know_nothing_comes(self, kind: str) -> None:
        outcome = Teller().ask(kind)
        assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, "unknown_payment")

    def test_gives_back_what_was_taken_once_and_no_more(self) -> None:
        teller, key = Teller(), uuid7()
        teller.before("refund")
        assert teller.ask("refund", amount=9001).reason == "nothing_to_refund"
        assert teller.ask("refund", key).verdict == Verdict.PENDING
        assert teller.ask("look_up", key).verdict == Verdict.SUCCEEDED
        again = teller.ask("refund", amount=1)
        assert (again.verdict, again.reason) == (Verdict.FAILED, "nothing_to_refund")
        assert teller.charge().refunded_amount == 9000

    def test_promises_no_more_than_was_taken_and_keeps_every_promise(self, settings: Settings) -> None:
        settings.SANDBOX_REFUND_SECONDS = 1
        first, second = Teller(), Teller()
        for teller in (first, second):
            teller.before("refund")
            assert teller.ask("refund", amount=5000).verdict == Verdict.PENDING
            refused = teller.ask("refund", amount=4001)
            assert (refused.verdict, refused.reason) == (Verdict.FAILED, "nothing_to_refund")
            assert teller.ask("refund", amount=4000).verdict == Verdict.PENDING
        line.ask("hasten", payments=[first.payment.pk, second.payment.pk], seconds=1)
        bank.settle_due()
        assert first.charge().refunded_amount == second.charge().refunded_amount == 9000

    def test_a_card_token_is_good_once_and_for_its_subject_alone(self) -> None:
        first, thief = Teller(), Teller()
        thief.token = first.token
        assert thief.ask("authorize").reason == "invalid_token"
        assert first.ask("authorize").verdict == Verdict.SUCCEEDED
        first.payment.pk = uuid7()
        assert first.ask("authorize").reason == "invalid_token"
        assert Charge.objects.count() == 1

    @pytest.mark.parametrize(("confirms", "verdict"), [(True, Verdict.SUCCEEDED), (False, Verdict.DECLINED)])
    def test_a_challenge_is_answered_once(self, settings: Settings, confirms: bool, verdict: Verdict) -> None:
        teller, key = Teller(ASKING), uuid7()
        asked = teller.ask("authorize", key)
        base = settings.BANK_URL or settings.BASE_URL
        assert (asked.verdict, asked.action_url) == (Verdict.NEEDS_ACTION, f"{base}/bank/challenge/{key}")
        for answer in (confirms, not confirms):
            line.ask("answer_challenge", key=key, is_confirmed=answer)
        assert teller.ask("look_up", key).verdict == verdict
        assert teller.charge().state == ("held" if confirms else "declined")

    def test_its_books_list_every_act(self) -> None:
        began, teller = clock.now(), Teller()
        teller.before("refund")
        teller.ask("refund")
        found = list(provider.current().records(began))
        assert [(row.kind, row.amount, row.currency) for row in found] == [
            (kind, 9000, "GBP") for kind in ("authorize", "capture", "refund")
        ]
        assert {(row.payment, row.account) for row in found} == {
            (teller.payment.pk, teller.payment.merchant_id)
        }
        assert {row.key for row in found} == set(Call.objects.values_list("key", flat=True))
        assert not list(provider.current().records(clock.now() + timedelta(seconds=1)))

    def test_an_unknown_card_is_refused(self) -> None:
        with pytest.raises(bank.UnknownCard):
            Teller("4111111111111111")


class TestFaults:
    def test_are_set_over_the_line(self) -> None:
        line.ask("set_fault", verb="capture", mode="down", times=2)
        assert Fault.objects.values_list("verb", "mode", "times").get() == ("capture", "down", 2)

    @pytest.mark.parametrize("mode", [mode for mode in Fault.Mode if not mode.startswith("notify")])
    def test_give_no_answer_and_the_look_up_knows_whether_it_was_done(self, mode: str) -> None:
        is_done = mode.startswith("done") or mode == "nonsense"
        for kind in ACTS:
            teller, key = Teller(), uuid7()
            teller.before(kind)
            misbehaving.set_fault(verb=kind, mode=mode, times=1)
            began = time.monotonic()
            with pytest.raises((misbehaving.Broken, http.NoAnswer, orjson.JSONDecodeError)):
                teller.ask(kind, key, patience=0.2)
            assert time.monotonic() - began < 2, kind
            assert (teller.ask("look_up", key).verdict == Verdict.NOT_FOUND) == (not is_done), kind
            assert teller.ask(kind, key).verdict in (Verdict.SUCCEEDED, Verdict.PENDING), kind
            assert Call.objects.filter(key=key).count() == 1
            assert Call.objects.filter(charge=teller.charge(), kind=kind).count() == 1
