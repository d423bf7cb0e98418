"""Helpers that create an order, and check that the service accepts it, or refuses it without changing a row."""

from typing import Any

from tests.conftest import Api
from tests.factories import item, order
from tests.refusals import nothing_moves, refused, without


def refuse(api: Api, param: str, **changes: Any) -> dict[str, Any]:
    """Create an order with changed fields, and check that it is refused with an error about `param`.

    Fail if a row was written. Return the error.
    """
    with nothing_moves():
        answer = api.post("checkouts", without(order(**changes)))
        return refused(answer, 422, "validation_failed", param)


def refuse_item(api: Api, field: str, **changes: Any) -> dict[str, Any]:
    return refuse(api, f"items[0].{field}", items=[without(item(**changes))])


def accept(api: Api, **changes: Any) -> dict[str, Any]:
    """Create an order with changed fields, and return the checkout as the API shows it."""
    answer = api.post("checkouts", order(**changes))
    assert answer.status_code == 201, answer.json()
    read: dict[str, Any] = api.get(f"checkouts/{answer.json()['data']['checkout_uuid']}").json()["data"]
    return read


def ticket(**custom: Any) -> list[dict[str, Any]]:
    return [item(custom_data=custom)]
