"""A hundred people take shares through the group link at once. In another race, two people pay the same share."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from checkout import captures, mate_shares, operation_recovery
from checkout.group import share_claims
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof
from config import errors
from payments.models import Merchant, Operation
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests import factories, mates
from tests.factories import CAUSE, CustomerFactory

pytestmark = pytest.mark.django_db(transaction=True)
CROWD, AT_ONCE, SHARES = 100, 10, 19


@pytest.fixture
def shares(acme: Merchant, pay: Callable[..., Checkout]) -> list[PaymentRequest]:
    checkout = factories.checkout(acme)
    mates.split(checkout, *[400] * SHARES)
    captures.capture(acme, pay(checkout).pk, cause=CAUSE)
    return list(checkout.payment_requests.order_by("position"))


def at_once(attempts: list[Callable[[], object]]) -> list[str]:
    """Run the attempts. Return the result of each: "done", the error code, or the `repr` of an unexpected error.

    At most ten attempts run at the same moment, because the number of connections is limited.
    """
    barrier = Barrier(min(AT_ONCE, len(attempts)))

    def attempt(call: Callable[[], object]) -> str:
        try:
            connection.ensure_connection()
            barrier.wait(20)
            call()
        except Exception as error:
            return errors.code_of(error) or repr(error)
        else:
            return "done"
        finally:
            connection.close()

    with ThreadPoolExecutor(min(AT_ONCE, len(attempts))) as pool:
        return list(pool.map(attempt, attempts))


def taking(share: PaymentRequest, person: int) -> Callable[[], object]:
    return lambda: share_claims.claim_share(share.pk, claim=f"{person:064d}", name=f"Person {person}")


@pytest.mark.rule("group.taken")
def test_a_hundred_browsers_claim_each_share_once(shares: list[PaymentRequest]) -> None:
    """Each person tries to take one of the nineteen shares. Each share is given to exactly one person."""
    answers = at_once([taking(shares[person % SHARES], person) for person in range(CROWD)])
    assert Counter(answers) == {"done": SHARES, "share_not_open": CROWD - SHARES}
    taken = list(PaymentRequest.objects.values_list("claim_digest", "claim_name"))
    assert len(set(taken)) == SHARES and all(f"Person {int(digest)}" == name for digest, name in taken)
    winners = {int(digest) for digest, _ in taken}
    assert winners == {person for person, answer in enumerate(answers) if answer == "done"}


@pytest.mark.rule("group.one_share")
def test_one_browser_that_claims_several_shares_at_once_gets_one(shares: list[PaymentRequest]) -> None:
    answers = at_once([taking(share, 1) for share in shares[:AT_ONCE]])
    assert set(answers) == {"done"}
    assert PaymentRequest.objects.exclude(claim_digest="").count() == 1


@pytest.mark.rule("group.pays")
def test_of_two_mates_who_pay_one_share_only_the_one_with_the_claim_pays(
    shares: list[PaymentRequest],
) -> None:
    """Two people pay a share at once. If the share is claimed, only the person with the claim can pay."""

    def paying(share: PaymentRequest, claim: str, card: str) -> Callable[[], object]:
        mate, token = CustomerFactory.create(), bank.tokenise(subject=share.pk, number=card)
        return lambda: mate_shares.pay(share.pk, card=CardUse(token), mate=mate, cause=CAUSE, claim=claim)

    zoe, ade = "z" * 64, "a" * 64
    for share in shares[:4]:
        share_claims.claim_share(share.pk, claim=zoe, name="Zoe")
        rivals = [paying(share, ade, mates.AMYS), paying(share, zoe, mates.FINNS)]
        assert sorted(at_once(rivals)) == ["done", "share_not_open"]
        assert mates.settled(share) == "reimbursed"
        assert share.payment is not None
        assert (share.payment.card_last4, share.name) == (mates.FINNS[-4:], "Zoe")
    for share in shares[4:8]:
        answers = at_once([taking(share, 7), paying(share, "", mates.FINNS)])
        assert Counter(answers) == {"done": 1, "share_not_open": 1}
    operation_recovery.finish_due_operations(shares[0].checkout_id)
    assert not Operation.objects.filter(state="unknown").exists() and ledger_proof.find_breaches() == []
