"""An idempotency key is free again if the database fails during the call that uses the key."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.db import OperationalError, connection, transaction
from pytest_django.fixtures import Settings

from checkout import cancellations, creation
from checkout.models import ApiCall, Checkout, IdempotencyKey
from tests.conftest import Api
from tests.factories import order
from tests.refusals import refused

pytestmark = pytest.mark.rule("idempotency.kept")


@contextmanager
def locked(checkout: Checkout) -> Iterator[None]:
    """Lock the checkout in another transaction, and let this connection wait only briefly for locks."""
    other = connection.copy()
    with connection.cursor() as ours, other.cursor() as theirs:
        ours.execute("SET lock_timeout = '50ms'")
        theirs.execute("BEGIN")
        theirs.execute("SELECT 1 FROM checkout_checkout WHERE id = %s FOR UPDATE", [checkout.pk])
        yield
        ours.execute("RESET lock_timeout")
    other.close()


@pytest.mark.django_db(transaction=True)
def test_a_call_whose_row_stays_locked_is_refused_and_recorded(api: Api, held: Checkout) -> None:
    path = f"checkouts/{held.pk}/cancel"
    with locked(held):
        refused(api.post(path, idempotency_key="k"), 409, "operation_in_progress")
    assert ApiCall.objects.get().error_code == "operation_in_progress"
    assert api.post(path, idempotency_key="k").status_code == 200


@pytest.mark.parametrize("headers", [{}, {"idempotency_key": "k"}], ids=["plain", "with a key"])
@pytest.mark.parametrize("path", ["checkouts", "checkouts/{}/cancel"], ids=["create", "cancel"])
def test_a_call_during_a_failure_of_the_database_can_be_repeated(
    api: Api, held: Checkout, monkeypatch: pytest.MonkeyPatch, path: str, headers: dict[str, str]
) -> None:
    path, body = path.format(held.pk), order() if path == "checkouts" else None
    with monkeypatch.context() as patch:
        for verbs, name in ((creation, "create"), (cancellations, "cancel")):
            patch.setattr(verbs, name, Mock(side_effect=OperationalError("the connection is lost")))
        refused(api.post(path, body, **headers), 503, "service_unavailable")
    assert not IdempotencyKey.objects.exists() and not ApiCall.objects.exists()
    assert api.post(path, body, **headers).status_code in (200, 201)


def test_a_creation_refuses_to_run_in_an_open_transaction(api: Api) -> None:
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        api.post("checkouts", order(), idempotency_key="k")


def test_fail_point_after_a_stored_answer_is_reached_only_if_the_answer_is_stored(
    api: Api, held: Checkout, settings: Settings, tmp_path: Path
) -> None:
    settings.FAIL_POINTS = str(tmp_path)
    tmp_path.joinpath("answer_kept").write_text("raise")
    path = f"checkouts/{held.pk}/capture"
    refused(api.post(path, b"{", idempotency_key="k"), 400, "invalid_json")
    api.client.raise_request_exception = False
    assert api.post(path, idempotency_key="k").status_code == 500
    assert api.post(path, idempotency_key="k")["Idempotent-Replay"] == "true"
