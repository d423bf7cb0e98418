"""The sandbox bank fulfils the port's contract, and goes wrong on request, alike in process and over HTTP."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
import pytest
from django.conf import settings
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from config.lib import clock
from config.lib.web import http
from payments import provider
from payments.models import Merchant, Operation, Payment
from payments.provider import SERVER_ERROR, CardUse, Outcome, Verdict
from payments.providers.sandbox import bank, client, fault_injection, journal, settling
from payments.providers.sandbox.models import BankNotification, Call, Charge, Fault
from tests.bank import line, urls

PATIENCE = 5.0
DAWN = datetime(2020, 1, 1, tzinfo=UTC)
VISA, ASKING = "4242424242424242", "4000002500003155"
ACTS = ["authorize", "capture", "void", "refund"]


class Teller:
    """One card's money at the bank, over the line that the settings name."""

    def __init__(self, number: str = VISA) -> None:
        merchant = Merchant(pk=uuid7())
        self.payment = Payment(
            pk=uuid7(), merchant=merchant, subject=uuid7(), checkout_uuid=uuid7(), amount=9000, currency="GBP"
        )
        self.token = str(client.ask("tokenise", subject=self.payment.subject, number=number))

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

    def look_up(self, kind: str, key: UUID) -> Outcome:
        return provider.current().look_up(self.operation(kind, key), PATIENCE)

    def in_dashboard(self, kind: str, amount: int = 9000) -> None:
        client.ask("act_in_dashboard", kind=kind, payment=self.payment.pk, amount=amount)

    def later(self, seconds: int) -> None:
        client.ask("advance", payments=[self.payment.pk], seconds=seconds)

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
    monkeypatch.setattr(urls, "HANG_SECONDS", 0.4)
    if request.param:
        settings.ROOT_URLCONF = "tests.bank.urls"
        line.connect(request.getfixturevalue("live_server").url, monkeypatch.setattr)


class TestTheContract:
    @pytest.mark.rule("sandbox.bank")
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
        assert teller.look_up("authorize", key) == held
        for stranger in (teller, Teller()):
            missing = stranger.look_up("capture", uuid7())
            assert (missing.verdict, missing.is_vouched) == (Verdict.NOT_FOUND, True)

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
        assert teller.look_up("refund", key).verdict == Verdict.SUCCEEDED
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
        for teller in (first, second):
            teller.later(1)
        settling.settle_due()
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
        asked, before = teller.ask("authorize", key), clock.now()
        assert (asked.verdict, asked.action_url) == (
            Verdict.NEEDS_ACTION,
            f"{client.address()}/bank/challenge/{key}",
        )
        for answer in (confirms, not confirms):
            client.ask("answer_challenge", key=key, is_confirmed=answer)
        assert teller.look_up("authorize", key).verdict == verdict
        assert [row.verdict for row in provider.current().records(before)] == [verdict], (
            "listed as it stands now"
        )
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

    @pytest.mark.rule("sandbox.cards")
    def test_an_unknown_card_is_refused(self) -> None:
        with pytest.raises(bank.UnknownCard):
            Teller("4111111111111111")


BROKEN_OFF = {Fault.Mode.DOWN, Fault.Mode.DONE_THEN_RESET}


def is_no_answer(teller: Teller, kind: str, key: UUID, mode: str) -> bool:
    """Whether the call ends without an answer, or with an error of the bank's own where that is its fault."""
    is_whole = (
        client.address() != settings.BASE_URL and mode in BROKEN_OFF
    )  # Django's test server cannot break a connection
    if mode in fault_injection.ERRORS or is_whole:
        answer = teller.ask(kind, key, patience=0.2)
        return (answer.verdict, answer.reason) == (Verdict.UNKNOWN, SERVER_ERROR)
    with pytest.raises((fault_injection.Broken, http.NoAnswer, orjson.JSONDecodeError)):
        teller.ask(kind, key, patience=0.2)
    return True


class TestFaults:
    def test_are_set_over_the_line(self) -> None:
        client.ask("set_fault", verb="capture", mode="down", times=2)
        assert Fault.objects.values_list("verb", "mode", "times").get() == ("capture", "down", 2)

    @pytest.mark.parametrize(
        "mode", sorted((fault_injection.UNDONE | fault_injection.DONE) - fault_injection.REPLAYED)
    )
    def test_give_no_answer_and_the_look_up_knows_whether_it_was_done(self, mode: str) -> None:
        is_done = mode.startswith("done") or mode == "nonsense"
        for kind in ACTS:
            teller, key = Teller(), uuid7()
            teller.before(kind)
            fault_injection.set_fault(verb=kind, mode=mode, times=1)
            began = time.monotonic()
            assert is_no_answer(teller, kind, key, mode), kind
            assert time.monotonic() - began < 2, kind
            assert (teller.look_up(kind, key).verdict == Verdict.NOT_FOUND) == (not is_done), kind
            assert teller.ask(kind, key).verdict in (Verdict.SUCCEEDED, Verdict.PENDING), kind
            assert Call.objects.filter(key=key).count() == 1
            assert Call.objects.filter(charge=teller.charge(), kind=kind).count() == 1

    def test_an_error_may_be_repeated_under_its_key_for_ever(self) -> None:
        """Only a look-up says what became of it, and only another key brings it about."""
        for kind in ACTS:
            for mode, is_done in (("replayed_500", False), ("done_replayed_500", True)):
                teller, key = Teller(), uuid7()
                teller.before(kind)
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
    def test_an_act_may_be_accepted_and_end_later(
        self, kind: str, mode: str, seconds: int, verdict: Verdict, reason: str
    ) -> None:
        teller, key = Teller(), uuid7()
        teller.before(kind)
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

    def test_what_was_taken_in_the_dashboard_is_refused_and_the_look_up_says_that_it_was_taken(self) -> None:
        teller, key = Teller(), uuid7()
        teller.before("capture")
        fault_injection.set_fault(verb="capture", mode="already_captured", times=1)
        refused = teller.ask("capture", key)
        assert (refused.verdict, refused.reason) == (Verdict.FAILED, "already_captured")
        found = teller.look_up("capture", key)
        assert (found.verdict, found.amount) == (Verdict.SUCCEEDED, 9000)
        assert teller.charge().state == "captured"

    @pytest.mark.parametrize("kind", ["capture", "refund"])
    def test_a_forgotten_key_is_a_new_one_and_the_look_up_forgets_nothing(self, kind: str) -> None:
        teller, key = Teller(), uuid7()
        teller.before(kind)
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
        assert [row.key for row in provider.current().records(DAWN) if row.kind == kind] == [key, key]

    def test_a_key_is_forgotten_when_its_life_is_over(self, settings: Settings) -> None:
        settings.SANDBOX_KEY_SECONDS = 3600
        assert provider.current().key_life == timedelta(hours=1)
        teller, key = Teller(), uuid7()
        teller.before("refund")
        teller.ask("refund", key, amount=4000)
        Call.objects.update(created_at=clock.now() - timedelta(minutes=59))
        teller.ask("refund", key, amount=4000)
        assert Call.objects.filter(kind="refund").count() == 1
        Call.objects.update(created_at=clock.now() - timedelta(minutes=61))
        teller.ask("refund", key, amount=4000)
        assert Call.objects.filter(kind="refund", reference=key).count() == 2

    def test_a_look_up_by_the_key_alone_proves_nothing(self) -> None:
        teller, key = Teller(), uuid7()
        teller.before("refund")
        teller.ask("refund", key)
        journal.delete(key)
        fault_injection.set_fault(verb="look_up", mode="not_vouched", times=1)
        missing = teller.look_up("refund", key)
        assert (missing.verdict, missing.is_vouched) == (Verdict.NOT_FOUND, False)
        assert teller.look_up("refund", key).verdict == Verdict.SUCCEEDED

    @pytest.mark.parametrize("kind", ACTS)
    def test_what_was_done_may_be_told_in_garbage(self, kind: str) -> None:
        teller, key = Teller(), uuid7()
        teller.before(kind)
        fault_injection.set_fault(verb=kind, mode="garbage", times=1)
        told = teller.ask(kind, key)
        assert told.reason == told.reference == fault_injection.GARBAGE and len(told.reason) > 4000
        found = teller.look_up(kind, key)
        assert (found.reference, found.reason) == (str(key), "")

    @pytest.mark.parametrize("kind", ACTS)
    def test_an_amount_may_be_no_number(self, kind: str) -> None:
        teller, key = Teller(), uuid7()
        teller.before(kind)
        fault_injection.set_fault(verb=kind, mode="no_amount", times=1)
        assert str(teller.ask(kind, key).amount) == "a lot"
        assert teller.look_up(kind, key).amount == 9000

    def test_half_may_be_held(self) -> None:
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
    def test_a_refusal_stays_with_its_key_and_another_key_is_asked_anew(
        self, kind: str, mode: str, reason: str
    ) -> None:
        teller, key = Teller(), uuid7()
        teller.before(kind)
        fault_injection.set_fault(verb=kind, mode=mode, times=1)
        refused = [teller.ask(kind, key) for _ in range(2)]
        assert [(outcome.verdict, outcome.reason) for outcome in refused] == [(Verdict.FAILED, reason)] * 2
        assert teller.look_up(kind, key) == refused[0]
        assert teller.ask(kind).verdict in (Verdict.SUCCEEDED, Verdict.PENDING)


class TestADispute:
    def test_is_listed_when_it_is_opened_and_again_when_it_is_decided(self) -> None:
        teller = Teller()
        teller.before("refund")
        for happens in ({"verb": "dispute"}, {"verb": "decide", "is_won": True}):
            before, verb = clock.now(), str(happens.pop("verb"))
            assert not list(provider.current().disputed(before))
            client.ask(verb, payment=teller.payment.pk, **happens)
            assert list(provider.current().disputed(before)) == [teller.payment.pk]


class TestTheDashboard:
    def test_what_is_done_there_is_told_and_listed_under_a_key_that_nobody_gave(self) -> None:
        teller, other = Teller(), Teller()
        for each in (teller, other):
            each.ask("authorize")
        teller.in_dashboard("capture")
        teller.in_dashboard("refund", amount=1000)
        other.in_dashboard("void")
        settling.settle_due()
        assert (teller.charge().state, teller.charge().refunded_amount) == ("captured", 1000)
        assert other.charge().state == "voided"
        strangers = {row.key: row for row in provider.current().records(DAWN) if row.kind != "authorize"}
        assert sorted((row.kind, row.amount) for row in strangers.values()) == [
            ("capture", 9000),
            ("refund", 1000),
            ("void", 9000),
        ]
        assert set(BankNotification.objects.values_list("call", flat=True)) == set(strangers)
        assert other.look_up("void", uuid7()).verdict == Verdict.SUCCEEDED


class TestTheCardsThatEndLater:
    def test_0077_confirms_its_capture_three_seconds_later(self) -> None:
        teller, key = Teller("4000000000000077"), uuid7()
        teller.ask("authorize")
        assert teller.ask("capture", key).verdict == Verdict.PENDING
        assert teller.look_up("capture", key).verdict == Verdict.PENDING
        assert Call.objects.filter(settles_at__gt=clock.now() + timedelta(seconds=2)).count() == 1
        teller.later(3)
        assert teller.look_up("capture", key).verdict == Verdict.SUCCEEDED
        assert (teller.charge().state, BankNotification.objects.get().verdict) == ("captured", "succeeded")

    def test_7726_takes_a_settled_refund_back(self) -> None:
        teller, key = Teller("4000000000007726"), uuid7()
        teller.before("refund")
        teller.ask("refund", key)
        assert teller.look_up("refund", key).verdict == Verdict.SUCCEEDED
        assert teller.charge().refunded_amount == 9000
        settled = clock.now()
        assert not list(provider.current().records(settled))
        teller.later(2)
        settling.settle_due()
        assert [(row.key, row.verdict) for row in provider.current().records(settled)] == [
            (key, Verdict.FAILED)
        ]
        found = teller.look_up("refund", key)
        assert (found.verdict, found.reason) == (Verdict.FAILED, "card_account_closed")
        assert teller.charge().refunded_amount == 0
        told = BankNotification.objects.order_by("id").values_list("verdict", flat=True)
        assert list(told) == ["succeeded", "failed"]
        assert teller.ask("refund").verdict == Verdict.PENDING, "it can be sent again"
