"""A crash of PostgreSQL loses card tokens, but charges that were made with these tokens still work."""

import pytest
from django.db import connection
from django.test import Client

from payments import provider
from payments.provider import Verdict
from tests.payments.providers.sandbox.teller import ASKING, DAWN, Teller

pytestmark = pytest.mark.django_db


def ends_well(teller: Teller) -> bool:
    """Return whether a capture and a refund are accepted, and the bank lists the payment's card and subject."""
    taken, returned = teller.ask("capture"), teller.ask("refund")
    told = next(
        told for told in provider.current_provider().payments(DAWN) if told.payment == teller.payment.pk
    )
    is_told = told.card == taken.card == returned.card and told.subject == teller.payment.subject
    return is_told and (taken.verdict, returned.verdict) == (Verdict.SUCCEEDED, Verdict.PENDING)


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
        cursor.execute("TRUNCATE bank_cardtoken")  # as PostgreSQL does after a crash
    refused = entered.ask("authorize")
    assert (refused.verdict, refused.reason) == (Verdict.DECLINED, "invalid_token")
    assert Client().post(question, {"answer": "confirm"}).status_code == 303
    assert ends_well(charged) and ends_well(asking)


def test_a_token_can_be_used_once() -> None:
    teller, again = Teller(), Teller()
    assert teller.ask("authorize").verdict == Verdict.SUCCEEDED
    again.token, again.payment.subject = teller.token, teller.payment.subject
    assert again.ask("authorize").reason == "invalid_token"
