"""If the checkout's status does not allow a call, the error message says what to do in this status."""

from collections.abc import Callable
from typing import Any

import pytest

from checkout.api import state_messages
from checkout.models import Checkout
from checkout.states import Status
from tests.conftest import Api

pytestmark = [pytest.mark.django_db, pytest.mark.rule("api.conflict")]


@pytest.mark.parametrize(
    ("status", "verb", "words"),
    [
        ("created", "capture", "Wait for the event checkout.authorized"),
        ("voided", "capture", "Do not fulfil the order"),
        ("refunded", "capture", "cannot be captured again"),
        ("created", "refund", "Cancel it instead"),
        ("authorized", "refund", "Cancel it instead"),
        ("voided", "refund", "No money was taken"),
        ("captured", "pay", "already paid and captured"),
        ("authorized", "pay", "Capture or cancel it"),
        ("expired", "pay", "Create a new one"),
    ],
)
def test_a_refused_call_says_what_to_do(
    api: Api, at: Callable[[str], Checkout], status: str, verb: str, words: str
) -> None:
    base = "sandbox/v1" if verb == "pay" else "merchant/v1"
    body = {"merchant_refund_ref": "another"} if verb == "refund" else {}
    path = f"/api/{base}/checkouts/{at(status).pk}/{verb}"
    answer: Any = api.client.post(path, body, content_type="application/json", headers=api.headers({}))
    assert answer.status_code == 409 and words in answer.json()["error"]["message"]


def test_a_status_without_its_own_message_has_that_of_the_error_table() -> None:
    assert state_messages.message_for("not_refundable", Status.CAPTURED) == ""
    assert state_messages.message_for("share_not_open", Status.CREATED) == ""
