"""A share is deleted after a mate's request has read it, and before the request gets the lock of its order."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from checkout.models import Checkout, GroupLink, PaymentRequest
from checkout.split import share_rows
from checkout.split.share_rows import Share
from payments.models import Merchant
from tests import factories, mates
from tests.hosted_page.browsers import Mate
from tests.waiting import wait_for, waiting_for_locks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def share(acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> PaymentRequest:
    """Return an open share. When a newer split replaces it, its row is deleted at once."""
    monkeypatch.setattr(share_rows, "MAX_REPLACED", 0)
    (asked,) = mates.split(factories.checkout(acme), 2000, everyone_first=True)
    return asked


def while_the_lead_splits_again(share: PaymentRequest, request: Callable[[], Any]) -> Any:
    """Return the response to a request that waits for the order's lock while a new split deletes the share."""

    def send() -> Any:
        try:
            return request()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            checkout = Checkout.objects.locked(share.checkout_id)
            response = pool.submit(send)
            wait_for(lambda: waiting_for_locks() == 1, within=60)
            share_rows.create_shares(checkout, share_rows.replace_shares(checkout, {2: Share(1500, "Amy")}))
        assert not PaymentRequest.every.filter(pk=share.pk).exists()
        return response.result()


def test_the_form_of_a_deleted_share_leads_to_the_page_of_an_unknown_link(share: PaymentRequest) -> None:
    PaymentRequest.objects.filter(pk=share.pk).update(name="Finn")
    mate = Mate(share)
    response = while_the_lead_splits_again(share, lambda: mate.post("/decline"))
    assert (response.status_code, response["Location"]) == (303, mate.path)
    assert mate.get().status_code == 404


def test_a_deleted_share_cannot_be_taken(share: PaymentRequest) -> None:
    mate, token = Mate(share), GroupLink.objects.get(checkout=share.checkout_id).token
    take = {"share": str(share.position), "name": "Zoe"}
    response = while_the_lead_splits_again(share, lambda: mate.client.post(f"/pay/g/{token}/take", take))
    assert response.status_code == 409
