"""A prepared query returns what the queryset returns."""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models import F, QuerySet
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout
from config.lib.prepared import Prepared
from payments.models import Merchant, Operation, Payment
from tests import factories
from webhooks.models import SigningSecret, Subscription

ORDER = Prepared(
    lambda pk, name: (
        Checkout.objects.filter(pk=pk, merchant__name=name)
        .select_related("merchant", "payment", "lead")
        .annotate(price=F("amount"))
    ),
    UUID,
    str,
)


class TestRow:
    def test_equals_the_object_of_the_queryset(self, held: Checkout) -> None:
        found = ORDER.get(held.pk, held.merchant.name)
        with CaptureQueriesContext(connection) as sent:
            assert (found, found.merchant, found.payment) == (held, held.merchant, held.payment)
            assert found.lead is not None and found.lead == held.lead
        assert len(sent) == 0
        expected = {name: value for name, value in vars(held).items() if not name.startswith("_")}
        assert {name: getattr(found, name) for name in expected} == expected
        assert vars(found)["price"] == 9000

    def test_has_none_for_missing_relations(self, unpaid: Checkout) -> None:
        found = ORDER.get(unpaid.pk, unpaid.merchant.name)
        assert found.payment is None and found.lead is None

    def test_matches_the_given_values(self, unpaid: Checkout) -> None:
        assert ORDER.first(uuid4(), unpaid.merchant.name) is None
        assert ORDER.first(unpaid.pk, "Nobody") is None
        with pytest.raises(Checkout.DoesNotExist):
            ORDER.get(uuid4(), unpaid.merchant.name)

    def test_is_converted_as_its_fields_ask(self, acme: Merchant) -> None:
        subscription = Subscription.objects.create(merchant=acme, url="https://a.example", event_types=["*"])
        SigningSecret.objects.create(subscription=subscription, secret="whsec_plain")
        secret = Prepared(lambda pk: SigningSecret.objects.filter(subscription=pk), UUID)
        assert secret.get(subscription.pk).secret == "whsec_plain"

    def test_is_the_first_in_the_querysets_order(self, held: Checkout, pay: Callable[..., Checkout]) -> None:
        newest = Prepared(
            lambda payment: Operation.objects.filter(payment=payment).order_by("-created_at"), UUID
        )
        payment = Payment.objects.get()
        later = Operation.objects.create(
            payment=payment, kind="void", amount=9000, state="planned", created_at=held.payable_until
        )
        assert newest.first(payment.pk) == later


class TestRows:
    def test_are_those_of_the_queryset(self, acme: Merchant) -> None:
        made = [factories.checkout(acme) for _ in range(3)]
        latest = Prepared(
            lambda merchant: Checkout.objects.filter(merchant=merchant).order_by("-pk")[:2], UUID
        )
        assert latest.all(acme.pk) == [made[2], made[1]]
        assert latest.all(uuid4()) == []

    def test_load_deferred_fields_later(self, unpaid: Checkout) -> None:
        (found,) = Prepared(lambda: Checkout.objects.only("amount")).all()
        assert found.get_deferred_fields() and found.merchant_order_id == unpaid.merchant_order_id


class TestQuery:
    def test_is_built_once(self, unpaid: Checkout) -> None:
        built = []

        def build(pk: UUID) -> QuerySet[Checkout]:
            built.append(pk)
            return Checkout.objects.filter(pk=pk)

        prepared = Prepared(build, UUID)
        assert prepared.get(unpaid.pk) == prepared.get(unpaid.pk) == unpaid
        assert len(built) == 1

    def test_with_sql_that_depends_on_a_value_is_refused(self, db: None) -> None:
        prepared = Prepared(lambda name: Checkout.objects.filter(cancel_note__isnull=bool(name)), str)
        with pytest.raises(ValueError, match="depends on"):
            prepared.first("x")

    def test_can_compare_times(self, unpaid: Checkout) -> None:
        later = Prepared(lambda since: Checkout.objects.filter(created_at__gt=since), datetime)
        moment = timedelta(milliseconds=1)
        assert later.all(unpaid.created_at - moment) == [unpaid]
        assert later.all(unpaid.created_at + moment) == []

    def test_is_planned_once_a_connection_where_that_is_set(self, unpaid: Checkout) -> None:
        prepared = Prepared(lambda pk: Checkout.objects.filter(pk=pk).only("cancel_note"), UUID)
        for _ in range(6):
            prepared.get(unpaid.pk)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_prepared_statements"
                " WHERE statement LIKE 'SELECT %cancel_note%' AND statement NOT LIKE '%pg_prepared%'"
            )
            is_set = "prepare_threshold" in connection.settings_dict["OPTIONS"]
            assert cursor.fetchone()[0] == int(is_set)
