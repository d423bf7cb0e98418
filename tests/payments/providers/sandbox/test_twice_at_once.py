"""The bank's idempotency in real concurrency: two simultaneous calls with the same key get the same answer."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from uuid_utils.compat import uuid7

from payments.provider import Outcome, Verdict
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Call, CardToken, Charge
from tests.waiting import wait_for, waiting_for_locks


@pytest.mark.django_db(transaction=True)
def test_an_authorization_that_arrives_twice_at_once_has_one_answer() -> None:
    subject, key = uuid7(), uuid7()
    token = bank.tokenise(subject=subject, number="4242424242424242")
    charge = {"payment": uuid7(), "account": uuid7(), "amount": 9000, "currency": "GBP"}

    def authorize() -> Outcome:
        try:
            return bank.authorize(key=key, charge=charge, subject=subject, card_token=token)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            CardToken.objects.select_for_update().get()
            calls = [pool.submit(authorize), pool.submit(authorize)]
            wait_for(lambda: waiting_for_locks() == 2)
        answers = [call.result() for call in calls]
    assert answers[0] == answers[1] and answers[0].verdict == Verdict.SUCCEEDED
    assert (Call.objects.count(), Charge.objects.count()) == (1, 1)
