"""The peer refuses all parameters that Stripe has not published, with Stripe's error messages."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
import stripe as library
from stripe import StripeClient

from tests.payments.stripe_peer import checking, reduce
from tests.payments.stripe_peer.remote import Remote

PAYMENT = {"amount": "1000", "currency": "usd"}


def _ask(peer: Remote, path: str, form: str | None, **headers: str) -> tuple[int, Any]:
    body = None if form is None else form.encode()
    request = urllib.request.Request(f"{peer.address}{path}", body)
    for name, value in ({"Authorization": "Bearer sk_test_peer"} | headers).items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def test_the_api_document_matches_the_installed_library() -> None:
    assert reduce.FILE.read_text() == reduce.written(reduce.reduce())
    assert checking.document()["version"] == library.api_version


@pytest.mark.parametrize(
    ("form", "code", "param"),
    [
        ("amount=1000&currency=usd&colour=red", "parameter_unknown", "colour"),
        (
            "amount=1000&currency=usd&payment_method_options[card][colour]=red",
            "parameter_unknown",
            "payment_method_options[card][colour]",
        ),
        ("currency=usd", "parameter_missing", "amount"),
        ("amount=ten&currency=usd", "parameter_invalid_integer", "amount"),
        ("amount=10.5&currency=usd", "parameter_invalid_integer", "amount"),
        ("amount=1000&currency=usd&capture_method=later", None, "capture_method"),
        ("amount=1000&currency=usd&confirm=perhaps", None, "confirm"),
        ("amount=1000&currency=usd&allowed_payment_method_types=card", None, "allowed_payment_method_types"),
        ("amount=1000&currency=usd&payment_method_options=card", None, "payment_method_options"),
        ("amount=1000&currency=", "parameter_invalid_empty", "currency"),
        ("amount=1000&currency=usd&description[a]=b", None, "description"),
        ("amount=49&currency=usd", "amount_too_small", "amount"),
        ("amount=100000000&currency=usd", "amount_too_large", "amount"),
        ("amount=1005&currency=kwd", "invalid_charge_amount", "amount"),
        ("amount=1000&currency=xxx", None, "currency"),
        ("amount=1000&currency=usd&return_url=https://shop.example", None, "return_url"),
    ],
)
def test_a_parameter_that_stripe_refuses(peer: Remote, form: str, code: str | None, param: str) -> None:
    status, error = _ask(peer, "/v1/payment_intents", form)
    assert (status, error["type"], error.get("code"), error["param"]) == (
        400,
        "invalid_request_error",
        code,
        param,
    )
    assert _ask(peer, "/v1/payment_intents", None)[1]["data"] == []


def test_brackets_of_each_kind(peer: Remote) -> None:
    form = "amount=1000&currency=usd&metadata[order]=7&allowed_payment_method_types[]=card&expand[0]=latest_charge"
    status, intent = _ask(peer, "/v1/payment_intents", form)
    assert (status, intent["metadata"], intent["payment_method_types"]) == (200, {"order": "7"}, ["card"])


def test_a_query_is_checked_too(peer: Remote) -> None:
    assert _ask(peer, "/v1/events?limit=1&since=yesterday", None)[1]["param"] == "since"
    assert _ask(peer, "/v1/events?limit=101", None)[1]["param"] == "limit"
    assert _ask(peer, "/v1/payment_intents?created[after]=1", None)[1]["param"] == "created[after]"


def test_a_path_and_a_version_that_are_not_known(peer: Remote) -> None:
    assert _ask(peer, "/v1/sources", "a=b")[0] == 404
    assert _ask(peer, "/v1/account", None, Stripe_Version="2019-01-01")[0] == 400


def test_an_id_that_is_not_there(stripe: StripeClient) -> None:
    with pytest.raises(library.InvalidRequestError) as refused:
        stripe.v1.payment_intents.retrieve("pi_none")
    assert (refused.value.code, refused.value.http_status) == ("resource_missing", 404)
    with pytest.raises(library.InvalidRequestError) as refused:
        stripe.v1.refunds.create({"payment_intent": "pi_none"})
    assert (refused.value.code, refused.value.param) == ("resource_missing", "payment_intent")


def test_a_property_that_cannot_be_expanded(stripe: StripeClient) -> None:
    made = stripe.v1.payment_intents.create({"amount": 1000, "currency": "usd"})
    for path in ("colour", "latest_charge.payment_intent.latest_charge.payment_intent.latest_charge"):
        with pytest.raises(library.InvalidRequestError) as refused:
            stripe.v1.payment_intents.retrieve(made.id, {"expand": [path]})
        assert refused.value.param == "expand"
