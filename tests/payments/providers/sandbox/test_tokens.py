"""A card token is forgotten by a crash of PostgreSQL; the charge that was made with it goes on."""

from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from payments import provider
from payments.provider import Verdict
from payments.providers.sandbox.models import CardToken, Charge
from tests.payments.providers.sandbox.teller import ASKING, DAWN, Teller

pytestmark = pytest.mark.django_db


def ends_well(teller: Teller) -> bool:
    """Whether the money is taken and given back, and its card and payer are told as ever."""
    taken, returned = teller.ask("capture"), teller.ask("refund")
    told = next(told for told in provider.current().payments(DAWN) if told.payment == teller.payment.pk)
    is_told = told.card == taken.card == returned.card and told.subject == teller.payment.subject
    return is_told and (taken.verdict, returned.verdict) == (Verdict.SUCCEEDED, Verdict.PENDING)


def let_the_release_before_have_made_them() -> None:
    """That one's tokens are in the table that is logged."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO bank_cardtoken SELECT * FROM bank_cardtoken_unlogged")
        cursor.execute("TRUNCATE bank_cardtoken_unlogged")


@pytest.mark.rule("sign_in.crash")
def test_after_a_crash_a_card_is_entered_again_and_charges_go_on() -> None:
    charged, asking, entered = Teller(), Teller(ASKING), Teller()
    charged.ask("authorize")
    question = asking.ask("authorize").action_url
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT relpersistence::text FROM bank_cardtoken t JOIN pg_class c ON c.oid = t.tableoid"
        )
        assert cursor.fetchall() == [("u",)]
        cursor.execute("TRUNCATE bank_cardtoken_unlogged")  # as PostgreSQL does after a crash
    refused = entered.ask("authorize")
    assert (refused.verdict, refused.reason) == (Verdict.DECLINED, "invalid_token")
    assert Client().post(question, {"answer": "confirm"}).status_code == 303
    assert ends_well(charged) and ends_well(asking)


def test_a_token_of_the_release_before_is_good_once() -> None:
    teller, again = Teller(), Teller()
    let_the_release_before_have_made_them()
    assert teller.ask("authorize").verdict == Verdict.SUCCEEDED
    again.token, again.payment.subject = teller.token, teller.payment.subject
    assert again.ask("authorize").reason == "invalid_token"
    assert CardToken.objects.filter(used_at=None).count() == 1


def test_charges_of_before_get_the_card_of_their_token(monkeypatch: pytest.MonkeyPatch) -> None:
    tellers = [Teller(), Teller("5555555555554444"), Teller()]
    for teller in tellers:
        teller.ask("authorize")
    let_the_release_before_have_made_them()
    kept = tellers.pop().payment.pk
    Charge.objects.exclude(payment=kept).update(subject=None, last4="")
    migration: Any = import_module("payments.providers.sandbox.migrations.0006_cards_of_before")
    monkeypatch.setattr(migration, "RANGE", 1)
    with connection.schema_editor() as editor:
        migration.copy(None, editor)
    assert list(Charge.objects.order_by("pk").values_list("last4", flat=True)) == ["4242", "4444", "4242"]
    assert all(ends_well(teller) for teller in tellers)
