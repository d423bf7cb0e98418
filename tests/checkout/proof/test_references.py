"""The proof finds rows that refer to missing rows. This is needed where a reference has no foreign key."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from checkout.models import ApiCall, Checkout
from checkout.proof import ledger_proof, references, statements
from config.lib import clock
from tests import plans
from tests.checkout.proof.tampering import without_guards
from tests.conftest import Api
from tests.factories import order
from tests.webhooks.story import claim_one, emit, record, subscribe
from webhooks.models import Delivery, Event

pytestmark = [pytest.mark.django_db, pytest.mark.rule("money.proof")]


@pytest.fixture
def delivered(api: Api) -> Delivery:
    """Create an API call and a delivered event; return the delivery."""
    api.post("checkouts", order())
    due = emit(subscribe())
    record(claim_one(), 200)
    return Delivery.objects.get(pk=due.pk)


def kinds(hours: float | None) -> set[str]:
    since = None if hours is None else clock.now() - timedelta(hours=hours)
    return {breach.kind.name for breach in ledger_proof.find_breaches(since)}


TAMPERINGS = {
    "an event": ("DELETE FROM webhooks_event", {"ledger_event_missing"}),
    "another's event": ("UPDATE webhooks_event SET merchant_id = gen_random_uuid()",
                        {"ledger_event_missing", "ledger_merchant_missing"}),
    "a delivery": ("DELETE FROM webhooks_delivery", {"ledger_delivery_missing"}),
    "a subscription": (
        "DELETE FROM webhooks_signingsecret; DELETE FROM webhooks_endpoint; DELETE FROM webhooks_subscription",
        {"ledger_subscription_missing"},
    ),
    "a call's merchant": ("UPDATE checkout_apicall SET merchant_id = gen_random_uuid()", {"ledger_merchant_missing"}),
    "an order's merchant": (
        "UPDATE checkout_checkout SET merchant_id = gen_random_uuid()",
        {"ledger_merchant_missing"},
    ),
}  # fmt: skip


@pytest.mark.usefixtures("delivered")
@pytest.mark.parametrize(("sql", "found"), TAMPERINGS.values(), ids=TAMPERINGS)
@pytest.mark.parametrize("hours", [None, 1.0])
def test_a_deleted_row_is_reported_as_missing(sql: str, found: set[str], hours: float | None) -> None:
    assert kinds(hours) == set()
    with connection.cursor() as cursor:
        cursor.execute(sql)
    assert kinds(hours) == found


@pytest.mark.parametrize("table", ["payments_payment", "payments_posting"])
@pytest.mark.parametrize("hours", [None, 1.0])
def test_a_posting_without_a_merchant_is_reported(
    captured: Checkout, table: str, hours: float | None
) -> None:
    without_guards(f"UPDATE {table} SET merchant_id = gen_random_uuid()")
    assert "ledger_merchant_missing" in kinds(hours)


@pytest.mark.parametrize(
    "table", ["payments_payment", "checkout_customer", "checkout_checkout", "payments_merchant"]
)
def test_rows_that_others_refer_to_cannot_be_deleted(captured: Checkout, table: str) -> None:
    with (
        pytest.raises(IntegrityError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"DELETE FROM {table}")


def test_a_delivery_that_both_ended_and_waits_is_reported(delivered: Delivery) -> None:
    delivered.pk, delivered.status, delivered.ended_at, delivered.next_attempt_at = (
        clock.new_id_of_same_time(delivered.pk),
        "pending",
        None,
        clock.now(),
    )
    delivered.save(force_insert=True)
    assert kinds(None) == {"ledger_delivered_twice"}


def test_names_the_merchant_and_what_is_missing(delivered: Delivery) -> None:
    Event.objects.all().delete()
    (breach,) = ledger_proof.find_breaches()
    assert (breach.subject, breach.merchant_uuid) == (delivered.event_id, delivered.merchant_id)


@pytest.mark.usefixtures("delivered")
def test_a_proof_of_recent_rows_reads_only_recent_partitions() -> None:
    assert ApiCall.objects.exists()
    with CaptureQueriesContext(connection) as queries:
        assert (
            list(
                references.find_orphan_rows(
                    clock.first_id(clock.now() - timedelta(hours=1)), ledger_proof.LAST
                )
            )
            == []
        )
    asked = [query for query in queries if "JOIN" in query["sql"]]
    assert len(asked) == len(statements.REFERENCES)
    for query in asked:
        assert plans.days(query["sql"]) <= plans.since(clock.now() - timedelta(hours=1))
