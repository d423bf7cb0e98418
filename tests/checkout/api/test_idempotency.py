from datetime import timedelta
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from checkout import tasks
from checkout.models import ApiCall
from config.lib import clock
from tests import factories
from tests.conftest import Api


@pytest.mark.django_db
class TestTheRecord:
    def test_has_a_row_for_each_post_refusals_too(self, api: Api) -> None:
        order = factories.order()
        api.post("checkouts", order, Idempotency_Key="k")
        api.post("checkouts", order | {"currency": "EUR"}, Idempotency_Key="k")
        api.post("checkouts", order, Idempotency_Key=" ")
        api.post("checkouts", {})
        rows = ApiCall.objects.order_by("created_at").values_list("status", "error_code", "idempotency_key")
        assert list(rows) == [
            (201, "", "k"),
            (422, "idempotency_key_reused", None),
            (400, "invalid_header", None),
            (422, "validation_failed", None),
        ]
        assert ApiCall.objects.exclude(idempotency_key="k").exclude(body=None).count() == 0

    def test_knows_the_checkout_that_was_made(self, api: Api) -> None:
        made = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        api.post(f"checkouts/{made}/capture")
        assert [str(call.checkout_uuid) for call in ApiCall.objects.all()] == [made, made]


@pytest.mark.rule("secret.retention")
@pytest.mark.django_db
class TestTheRetention:
    def called(self, api: Api, days: float) -> UUID:
        """Return a call of so many days ago."""
        at = clock.now() - timedelta(days=days)
        api.post("checkouts", {})
        (call,) = ApiCall.objects.exclude(status=None).filter(created_at__gt=clock.now() - timedelta(hours=1))
        ApiCall.objects.filter(pk=call.pk).delete()
        call.pk = UUID(int=clock.first_id(at).int | call.pk.int & (1 << 76) - 1)
        call.created_at = at
        call.save(force_insert=True)
        return call.pk

    def test_removes_what_nobody_asks_about_any_more(self, api: Api, settings: Settings) -> None:
        old, young = self.called(api, 90.1), self.called(api, 89.9)
        tasks.delete_old_calls()
        assert [call.pk for call in ApiCall.objects.all()] == [young]
        settings.API_CALL_RETENTION = timedelta(days=30)
        tasks.delete_old_calls()
        assert not ApiCall.objects.exists() and old != young
