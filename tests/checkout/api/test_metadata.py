"""The `metadata` of an order is validated, is returned unchanged, and is not shown to payers."""

from typing import Any

import pytest

from checkout.models import Checkout
from payments.models import Merchant
from tests.checkout.orders import accept, refuse
from tests.conftest import Api
from tests.factories import order
from tests.hosted_page.browsers import Payer

pytestmark = [pytest.mark.django_db, pytest.mark.rule("create.metadata")]


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"basket": "B-71", "k" * 40: "v" * 500, "é": ""},
        {f"key-{n}": "x" * 100 for n in range(50)},
    ],
    ids=["nothing in it", "some", "fifty"],
)
def test_metadata_is_returned_unchanged(api: Api, sent: dict[str, str]) -> None:
    shown = accept(api, metadata=sent)
    assert shown["metadata"] == sent
    (listed,) = api.get("checkouts").json()["data"]["checkouts"]
    assert listed["metadata"] == sent


@pytest.mark.parametrize("more", [{}, {"metadata": None}], ids=["left out", "null"])
def test_metadata_is_empty_if_omitted(api: Api, more: dict[str, Any]) -> None:
    assert accept(api, **more)["metadata"] == {}


@pytest.mark.parametrize(
    ("param", "sent"),
    [
        ("metadata", []),
        ("metadata", "B-71"),
        ("metadata", {"": "x"}),
        ("metadata", {"k" * 41: "x"}),
        ("metadata", {"a\x00": "x"}),
        ("metadata", {f"key-{n}": "x" for n in range(51)}),
        ("metadata", {f"key-{n}": "x" * 400 for n in range(50)}),
        ("metadata.a", {"a": 1}),
        ("metadata.a", {"a": None}),
        ("metadata.a", {"a": {"b": "c"}}),
        ("metadata.a", {"a": "x" * 501}),
        ("metadata.a", {"a": "\x00"}),
    ],
)
def test_metadata_of_another_shape_is_refused(api: Api, param: str, sent: Any) -> None:
    refuse(api, param, metadata=sent)
    assert not Checkout.objects.exists()


@pytest.mark.rule("api.all_fields")
def test_each_error_in_the_metadata_is_reported(api: Api) -> None:
    sent = {"a": 1, "b": "fine", "c": "x" * 501, "k" * 9_000: 2, "": "x", "d": "\x00"}
    details = refuse(api, "metadata.a", metadata=sent)["details"]
    assert {row["param"]: row["message"] for row in details} == {
        "metadata.a": "Must be a string.",
        "metadata.c": "Must have at most 500 characters.",
        "metadata": "Keys must have 1 to 40 characters and no NUL character.",
        "metadata.d": "Must not contain NUL characters.",
    }


def test_metadata_is_not_shown_to_payers(acme: Merchant, api: Api) -> None:
    made = api.post("checkouts", order(metadata={"secret": "Xyzzy-77"})).json()["data"]
    page = Payer(Checkout.objects.get(pk=made["checkout_uuid"])).get("")
    assert "Xyzzy-77" not in page.content.decode()
