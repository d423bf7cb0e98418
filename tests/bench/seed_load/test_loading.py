from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django.fixtures import Settings

from checkout import states
from checkout.models import Change, Checkout
from checkout.proof import ledger_proof
from checkout.states import Status
from payments.inquiring import reconciliation
from payments.models import Inquiry, Merchant, Operation, Posting
from tests import factories
from tests.bench.seed_load import loading
from tests.conftest import Api
from webhooks import retention

pytestmark = pytest.mark.django_db
COUNT = 200
RESTING = {Status.CAPTURED, Status.EXPIRED, Status.VOIDED, Status.REFUNDED}


def seed(checkouts: int, merchant: UUID | None = None) -> str:
    said: list[str] = []
    loading.load(checkouts, merchants=[merchant] if merchant else (), say=said.append)
    return "\n".join(said)


@pytest.fixture
def load(acme: Merchant) -> str:
    return seed(checkouts=COUNT, merchant=acme.pk)


class TestTheLoad:
    def test_creates_checkouts_in_every_resting_state_and_reports_their_number(
        self, acme: Merchant, load: str
    ) -> None:
        found = list(Checkout.objects.filter(merchant=acme).values_list("status", flat=True))
        assert len(found) == COUNT
        assert set(found) == RESTING
        assert f"{COUNT} of {COUNT} checkouts" in load
        assert str(acme.pk) in load

    def test_keeps_every_invariant_of_the_ledger(self, load: str) -> None:
        assert Posting.objects.count() > COUNT
        assert ledger_proof.find_breaches() == []

    def test_keeps_the_invariants_after_its_old_events_are_dropped(
        self, load: str, settings: Settings
    ) -> None:
        settings.WEBHOOK_RETENTION = timedelta(days=8)
        assert retention.drop_old_partitions() > 0
        assert ledger_proof.find_breaches() == []

    def test_has_a_history_of_allowed_state_changes_only(self, load: str) -> None:
        origins: dict[Any, list[tuple[str, str]]] = {}
        for row in Change.objects.order_by("created_at", "id"):
            origins.setdefault(row.checkout_id, []).append((row.origin, row.to))
        assert len(origins) == COUNT
        last = dict(Checkout.objects.values_list("pk", "status"))
        for checkout_uuid, moves in origins.items():
            assert moves[0] == ("", "created")
            assert set(moves[1:]) <= set(states.ALLOWED_MOVES)
            assert [origin for origin, _ in moves[1:]] == [to for _, to in moves[:-1]]
            assert moves[-1][1] == last[checkout_uuid]

    def test_leaves_no_open_operation_and_no_reconciliation_inquiry(self, load: str) -> None:
        assert Operation.objects.count() > COUNT
        assert not Operation.objects.filter(ended_at=None).exists()
        reconciliation.run()
        assert not Inquiry.objects.exists()

    def test_is_listed_by_the_api_page_by_page(self, api: Api) -> None:
        seed(checkouts=COUNT, merchant=api.merchant.pk)
        listed, cursor = [], ""
        while cursor is not None:
            page = api.get(f"checkouts?limit=90{cursor and '&cursor=' + cursor}").json()["data"]
            listed += page["checkouts"]
            cursor = page["next_cursor"]
        assert len({row["checkout_uuid"] for row in listed}) == COUNT
        moments = [row["created_at"] for row in listed]
        assert moments == sorted(moments, reverse=True)
        for row in listed:
            assert row["amount"] == sum(item["quantity"] * item["unit_price"] for item in row["items"])

    def test_belongs_to_the_oldest_merchant_when_none_is_named(self, acme: Merchant, rival: Merchant) -> None:
        factories.checkout(rival)
        seed(checkouts=3)
        assert Checkout.objects.filter(merchant=acme).count() == 3


class TestRefusals:
    def test_a_merchant_that_does_not_exist(self, acme: Merchant) -> None:
        stranger = uuid4()
        with pytest.raises(loading.CannotLoad, match=str(stranger)):
            seed(checkouts=1, merchant=stranger)
        assert not Checkout.objects.exists()

    def test_no_merchant_at_all(self) -> None:
        with pytest.raises(loading.CannotLoad, match="create_merchant"):
            seed(checkouts=1)

    def test_production(self, acme: Merchant, settings: Settings) -> None:
        settings.ENVIRONMENT = "production"
        with pytest.raises(loading.CannotLoad, match="production"):
            seed(checkouts=1, merchant=acme.pk)
        assert not Checkout.objects.exists()

    def test_no_checkouts(self, acme: Merchant) -> None:
        with pytest.raises(loading.CannotLoad, match="at least 1"):
            seed(checkouts=0, merchant=acme.pk)
