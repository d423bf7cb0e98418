"""The bank's journal answers repeated calls, and lets a look-up find a call by its reference."""

from datetime import timedelta
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from config.lib import clock
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import bank, journal
from payments.providers.sandbox.models import BankNotification, Call, Charge

pytestmark = pytest.mark.django_db


@pytest.fixture
def charge() -> Charge:
    subject = uuid7()
    asked: dict[str, Any] = {"payment": uuid7(), "account": uuid7(), "amount": 9000, "currency": "GBP"}
    token = bank.tokenise(subject=subject, number="4242424242424242")
    bank.authorize(key=uuid7(), charge=asked, subject=subject, card_token=token)
    return Charge.objects.get()


def _write_line(charge: Charge, *call: Any, **facts: Any) -> Outcome:
    return journal.write_line(charge, journal.lines_about(charge), *call, **facts)


def test_a_key_repeats_its_response_until_it_is_forgotten(charge: Charge) -> None:
    key = uuid7()
    said = _write_line(charge, "capture", key, Verdict.SUCCEEDED)
    assert journal.remembered_answer(journal.lines_about(charge), key) == said
    journal.forget_key(key, charge.payment)
    assert journal.remembered_answer(journal.lines_about(charge), key) is None


def test_a_key_expires(charge: Charge, settings: Any) -> None:
    key = uuid7()
    _write_line(charge, "capture", key, Verdict.SUCCEEDED)
    settings.SANDBOX_KEY_SECONDS = 60
    Call.objects.filter(key=key).update(created_at=clock.now() - timedelta(seconds=61))
    assert journal.remembered_answer(journal.lines_about(charge), key) is None


@pytest.mark.parametrize("done", [Verdict.SUCCEEDED, Verdict.PENDING])
def test_a_reference_finds_the_carried_out_call_despite_a_later_refusal(
    charge: Charge, done: Verdict
) -> None:
    key = uuid7()
    said = _write_line(charge, "refund", key, done)
    journal.forget_key(key, charge.payment)
    _write_line(charge, "refund", key, Verdict.FAILED, reason="nothing_to_refund")
    assert journal.newest_answer(journal.lines_about(charge), key) == said


def test_a_reference_finds_the_newest_refusal_if_no_call_was_carried_out(charge: Charge) -> None:
    key = uuid7()
    _write_line(charge, "refund", key, Verdict.FAILED, reason="charge_disputed")
    journal.forget_key(key, charge.payment)
    said = _write_line(charge, "refund", key, Verdict.FAILED, reason="nothing_to_refund")
    assert journal.newest_answer(journal.lines_about(charge), key) == said
    assert journal.newest_answer(journal.lines_about(charge), uuid7()) is None


def test_a_change_is_notified(charge: Charge) -> None:
    _write_line(charge, "refund", key := uuid7(), Verdict.PENDING)
    journal.change_line(Call.objects.get(key=key), verdict=Verdict.SUCCEEDED)
    assert BankNotification.objects.get().verdict == Verdict.SUCCEEDED
    assert Call.objects.get(key=key).changed_at > Call.objects.get(key=key).created_at
