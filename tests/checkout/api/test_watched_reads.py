"""If the sandbox watches an order, the service records who reads it. Reads of other orders are not recorded."""

import pytest
from pytest_django.fixtures import Settings

from checkout.api import watched_reads
from checkout.models import ApiCall, Refund
from payments.models import Merchant
from tests import factories
from tests.conftest import Api
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.rule("trial.reads")]


def watched(merchant: Merchant, name: str = "trial-lost-1") -> str:
    return str(factories.checkout(merchant, merchant_order_id=name).pk)


def test_reads_and_lists_of_watched_orders_are_recorded(acme: Merchant, api: Api) -> None:
    uuid = watched(acme)
    for path in (f"checkouts/{uuid}", "checkouts"):
        assert api.get(path).status_code == 200
    rows = ApiCall.objects.all()
    assert {(row.method, row.status, str(row.checkout_uuid)) for row in rows} == {("GET", 200, uuid)}
    assert len(rows) == 2


def test_other_reads_are_not_recorded(acme: Merchant, api: Api, rival_api: Api, settings: Settings) -> None:
    factories.checkout(acme)
    uuid = watched(acme)
    assert rival_api.get(f"checkouts/{uuid}").status_code == 404
    settings.SANDBOX = False
    api.get(f"checkouts/{uuid}")
    settings.SANDBOX = True
    api.get("checkouts?merchant_order_id=A-20417")
    assert not ApiCall.objects.filter(status=200).exists()


def test_an_order_whose_refund_has_failed_is_watched(acme: Merchant, api: Api) -> None:
    held = stage.captured(acme)
    Refund.objects.create(
        merchant=acme,
        checkout=held,
        merchant_refund_ref="r-1",
        amount=held.amount,
        status="failed",
        failure_reason="refused",
        created_at=held.created_at,
    )
    api.get(f"checkouts/{held.pk}")
    assert ApiCall.objects.get(method="GET").checkout_uuid == held.pk


def test_a_list_records_only_a_limited_number_of_orders(acme: Merchant, api: Api) -> None:
    for number in range(watched_reads.MAX_RECORDED + 3):
        watched(acme, f"trial-refused-{number}")
    api.get("checkouts")
    assert ApiCall.objects.count() == watched_reads.MAX_RECORDED
