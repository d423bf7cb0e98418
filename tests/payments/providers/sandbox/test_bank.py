"""The sandbox bank implements the provider port, in the same process and over HTTP."""

import pytest
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from config.lib import clock
from payments import provider
from payments.provider import Verdict
from payments.providers.sandbox import bank, client, settling
from payments.providers.sandbox.models import BankNotification, Call, Charge
from tests.payments.providers.sandbox.teller import ACTS, ASKING, Teller

pytestmark = pytest.mark.usefixtures("both_ways")


class TestTheContract:
    @pytest.mark.rule("sandbox.bank")
    @pytest.mark.parametrize("kind", ACTS)
    def test_one_key_has_one_answer_and_one_effect(self, kind: str) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding(kind)
        first = teller.ask(kind, key)
        assert first.verdict == (Verdict.PENDING if kind == "refund" else Verdict.SUCCEEDED)
        assert (first.amount, first.reference) == (9000, str(key))
        assert first.card is not None and (first.card.brand, first.card.last4) == ("Visa", "4242")
        assert [teller.ask(kind, key) for _ in range(2)] == [first] * 2
        assert Call.objects.filter(kind=kind).count() == 1
        assert Charge.objects.count() == 1

    def test_a_look_up_repeats_the_answer_or_finds_none(self) -> None:
        teller, key = Teller(), uuid7()
        held = teller.ask("authorize", key)
        assert teller.look_up("authorize", key) == held
        for stranger in (teller, Teller()):
            missing = stranger.look_up("capture", uuid7())
            assert (missing.verdict, missing.is_vouched) == (Verdict.NOT_FOUND, True)

    def test_a_released_hold_is_not_captured_nor_the_reverse(self) -> None:
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
    def test_an_unknown_payment_is_refused(self, kind: str) -> None:
        outcome = Teller().ask(kind)
        assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, "unknown_payment")

    def test_refunds_the_captured_amount_once_and_no_more(self) -> None:
        teller, key = Teller(), uuid7()
        teller.carry_out_preceding("refund")
        assert teller.ask("refund", amount=9001).reason == "nothing_to_refund"
        assert teller.ask("refund", key).verdict == Verdict.PENDING
        assert teller.look_up("refund", key).verdict == Verdict.SUCCEEDED
        again = teller.ask("refund", amount=1)
        assert (again.verdict, again.reason) == (Verdict.FAILED, "nothing_to_refund")
        assert teller.charge().refunded_amount == 9000

    def test_accepts_refunds_up_to_the_captured_amount_and_settles_them(self, settings: Settings) -> None:
        settings.SANDBOX_REFUND_SECONDS = 1
        first, second = Teller(), Teller()
        for teller in (first, second):
            teller.carry_out_preceding("refund")
            assert teller.ask("refund", amount=5000).verdict == Verdict.PENDING
            refused = teller.ask("refund", amount=4001)
            assert (refused.verdict, refused.reason) == (Verdict.FAILED, "nothing_to_refund")
            assert teller.ask("refund", amount=4000).verdict == Verdict.PENDING
        for teller in (first, second):
            teller.later(1)
        settling.settle_due()
        assert first.charge().refunded_amount == second.charge().refunded_amount == 9000

    def test_a_card_token_works_once_and_only_for_its_subject(self) -> None:
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
            f"{client.bank_address()}/bank/challenge/{key}",
        )
        for answer in (confirms, not confirms):
            client.call_bank("answer_challenge", key=key, is_confirmed=answer)
        assert teller.look_up("authorize", key).verdict == verdict
        assert provider.current_provider().movements(teller.payment).is_held == confirms
        assert list(provider.current_provider().changed(before)) == [teller.payment.pk]
        assert teller.charge().state == ("held" if confirms else "declined")

    @pytest.mark.rule("sandbox.cards")
    def test_an_unknown_card_is_refused(self) -> None:
        with pytest.raises(bank.UnknownCard):
            Teller("4111111111111111")


class TestTheDashboard:
    def test_operations_there_are_reported_and_listed_under_a_generated_key(self) -> None:
        teller, other = Teller(), Teller()
        for each in (teller, other):
            each.ask("authorize")
        teller.in_dashboard("capture")
        teller.in_dashboard("refund", amount=1000)
        other.in_dashboard("void")
        settling.settle_due()
        assert (teller.charge().state, teller.charge().refunded_amount) == ("captured", 1000)
        assert other.charge().state == "voided"
        taken, released = (provider.current_provider().movements(each.payment) for each in (teller, other))
        assert taken.capture is not None and taken.capture.amount == 9000
        assert [(row.amount, row.operation) for row in taken.refunds] == [(1000, None)]
        assert (released.capture, released.is_held) == (None, False)
        strangers = Call.objects.filter(reference=None).values_list("key", flat=True)
        assert set(BankNotification.objects.values_list("call", flat=True)) == set(strangers)
        assert other.look_up("void", uuid7()).verdict == Verdict.SUCCEEDED
