"""The `customer` of a new order: which fields are accepted, and that no response returns them."""

import logging
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from checkout.api.serializers import CustomerIn
from checkout.models import ApiCall, Checkout, IdempotencyKey, Prefill
from payments.models import Merchant
from tests.checkout.api.test_views import at_most
from tests.checkout.orders import accept, refuse
from tests.conftest import Api
from tests.factories import order
from webhooks.models import Event, Subscription, decrypt_if_personal

pytestmark = pytest.mark.django_db
LEA = {"phone": "+447700900123", "name": "Lea Fontaine", "locale": "fr-CA"}
BAD_CUSTOMERS: list[Any] = ["Lea", [], 5, True]
BAD_PHONES: list[Any] = [
    *("", "  ", "12345", "lea", "+999 123456789", "020 8366 1177", "+44 7700\x00900123", "1" * 41),
    *(5, True, [], {}),
]
BAD_NAMES: list[Any] = ["", " ", "a\x00b", "a\nb", "x" * 256, 5, []]
BAD_LOCALES: list[Any] = ["", "f\x00r", "x" * 36, 5, ["fr"]]
OF_LEA = ("7700900123", "7700 900123", "Fontaine", "fr-CA")


def stored_prefill() -> tuple[str, str, str]:
    row = Prefill.objects.get()
    return row.phone, row.name, row.locale


@pytest.mark.rule("create.customer")
class TestAcceptedCustomer:
    @pytest.mark.parametrize(
        ("customer", "kept"),
        [
            (LEA, ("+447700900123", "Lea Fontaine", "fr-CA")),
            ({"phone": "07700 900123"}, ("+447700900123", "", "")),
            ({"phone": "+33 6 12 34 56 78"}, ("+33612345678", "", "")),
            ({"name": "x" * 255, "phone": None}, ("", "x" * 255, "")),
            ({"locale": "tlh", "email": "lea@example.com", "name": None}, ("", "", "tlh")),
        ],
        ids=["all", "national", "abroad", "a name", "a locale that nobody speaks"],
    )
    def test_any_one_field_or_all_fields_are_stored(
        self, api: Api, customer: Any, kept: tuple[str, str, str]
    ) -> None:
        accept(api, customer=customer)
        assert stored_prefill() == kept

    @pytest.mark.parametrize("customer", [{}, None, {"phone": None}, {"email": "lea@example.com"}], ids=repr)
    def test_an_empty_customer_is_not_stored(self, api: Api, customer: Any) -> None:
        accept(api, customer=customer)
        assert not Prefill.objects.exists()

    def test_a_number_without_a_plus_gets_the_merchants_country_code(self, acme: Merchant, api: Api) -> None:
        Merchant.objects.filter(pk=acme.pk).update(country="FR")
        accept(api, customer={"phone": "06 12 34 56 78"})
        assert stored_prefill()[0] == "+33612345678"

    @pytest.mark.parametrize(
        ("param", "customer"),
        [
            *[("customer", customer) for customer in BAD_CUSTOMERS],
            *[("customer.phone", {"phone": phone}) for phone in BAD_PHONES],
            *[("customer.name", {"name": name}) for name in BAD_NAMES],
            *[("customer.locale", {"locale": locale}) for locale in BAD_LOCALES],
        ],
        ids=lambda value: repr(value)[:30],
    )
    def test_an_invalid_field_is_named(self, api: Api, param: str, customer: Any) -> None:
        refuse(api, param, customer=customer)
        assert not Prefill.objects.exists()

    def test_an_invalid_field_is_named_together_with_all_other_errors(self, api: Api) -> None:
        error = refuse(api, "customer.phone", customer={"phone": "1", "name": ""}, merchant_order_id="")
        named = {row["param"] for row in error["details"]}
        assert named == {"customer.phone", "customer.name", "merchant_order_id"}

    def test_fictional_numbers_are_refused_outside_the_sandbox(self, acme: Merchant, settings: Any) -> None:
        def wrong(phone: str) -> bool:
            return not CustomerIn(data={"phone": phone}, context={"merchant": acme}).is_valid()

        settings.SANDBOX = False
        assert wrong("+447700900123") and not wrong("+447911123456")


@pytest.mark.rule("create.customer", "prefill.kept")
class TestReturnedCustomer:
    def test_responses_and_events_contain_no_customer_data(
        self, api: Api, caplog: pytest.LogCaptureFixture
    ) -> None:
        Subscription.objects.create(merchant=api.merchant, url="http://127.0.0.1:9/", event_types=["*"])
        caplog.set_level(logging.DEBUG)
        made = api.post("checkouts", order(customer=LEA), idempotency_key="k")
        again = api.post("checkouts", order(customer=LEA), idempotency_key="k")
        path = f"checkouts/{made.json()['data']['checkout_uuid']}"
        paid = api.client.post(
            f"/api/sandbox/v1/{path}/pay",
            {"phone": "+447700900999"},
            content_type="application/json",
            headers=api.headers({}),
        )
        answers = [made, again, paid, api.get(path), api.get("checkouts"), api.post(f"{path}/capture")]
        assert [answer.status_code for answer in answers] == [201, 201, 200, 200, 200, 200]
        (event,) = Event.objects.all()
        said = [
            *(answer.content.decode() for answer in answers),
            decrypt_if_personal(event.type, bytes(event.body)),
        ]
        said += [caplog.text, str(list(ApiCall.objects.values()))]
        said += [bytes(key.body or b"").decode() for key in IdempotencyKey.objects.all()]
        assert not [word for word in OF_LEA if word in "\n".join(map(str, said))]

    def test_a_stored_refusal_contains_no_customer_data(self, api: Api) -> None:
        changes = {"customer": LEA, "total_amount": 1}
        refused = api.post("checkouts", order(**changes), idempotency_key="k")
        assert refused.status_code == 422
        kept = bytes(IdempotencyKey.objects.get().body or b"").decode()
        assert not [word for word in OF_LEA if word in kept + refused.content.decode()]

    def test_the_stored_digest_does_not_reveal_the_phone_number(self, api: Api, settings: Settings) -> None:
        """The digest is keyed. With a plain digest, anyone could find the number by trying all numbers."""
        key = {"idempotency_key": "k"}
        assert api.post("checkouts", order(customer=LEA), **key).status_code == 201
        digest = IdempotencyKey.objects.get().request_digest
        other = api.post("checkouts", order(customer=LEA | {"name": "Mia"}), **key)
        assert other.json()["error"]["code"] == "idempotency_key_reused"
        IdempotencyKey.objects.all().delete()
        settings.LOOKUP_KEY = "another key"
        assert api.post("checkouts", order(customer=LEA), **key).status_code == 201
        assert IdempotencyKey.objects.get().request_digest != digest

    def test_a_call_is_replayed_after_a_former_lookup_key_is_removed(
        self, api: Api, settings: Settings
    ) -> None:
        settings.LOOKUP_KEY_FALLBACKS = ["a former key"]
        made = api.post("checkouts", order(customer=LEA), idempotency_key="k")
        settings.LOOKUP_KEY_FALLBACKS = []
        again = api.post("checkouts", order(customer=LEA), idempotency_key="k")
        assert (again.status_code, again.content) == (201, made.content)


@pytest.mark.rule("api.statements")
def test_customer_data_costs_one_statement_to_store_and_none_to_read(api: Api) -> None:
    api.post("checkouts", order())
    with at_most(8) as plain_ones:
        assert api.post("checkouts", order()).status_code == 201
    with at_most(9) as statements:
        made = api.post("checkouts", order(customer=LEA))
    assert len(statements) == len(plain_ones) + 1
    with at_most(3) as statements:
        api.get(f"checkouts/{made.json()['data']['checkout_uuid']}")
    assert not any("prefill" in statement for statement in statements)
    assert Checkout.objects.count() == 3
