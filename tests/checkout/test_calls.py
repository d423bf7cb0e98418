import pytest

from checkout.models import ApiCall
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
