"""Subscriptions are created, rotated and ended through the API. Invalid requests are refused."""

from typing import Any, NoReturn

import psycopg
import pytest
from django.db import OperationalError
from django.utils import timezone

from tests.conftest import Api
from tests.refusals import nothing_moves, refused
from tests.webhooks.api.story import PATH, subscribe
from webhooks import subscriptions
from webhooks.models import SigningSecret


def test_a_change_during_another_one_is_a_503_that_can_be_retried(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the response to a lock timeout is a 503 with Retry-After.

    The caller can safely repeat the request, because it does not involve a card operation.
    """

    def locked(*_: object, **__: object) -> NoReturn:
        raise OperationalError from psycopg.errors.LockNotAvailable()

    monkeypatch.setattr(subscriptions, "rotate", locked)
    answer = api.post("webhooks/secret/rotate")
    refused(answer, 503, "service_unavailable")
    assert answer["Retry-After"] == "1"


class TestSubscription:
    @pytest.mark.rule("subscription.one")
    def test_shows_its_secret_once(self, api: Api) -> None:
        first = subscribe(api)
        assert first.status_code == 201 and first["Cache-Control"] == "no-store"
        assert set(first.json()["data"]) == {
            "url",
            "event_types",
            "created_at",
            "updated_at",
            "signing_secret",
        }
        again = subscribe(api, url="http://localhost:9/other", event_types=["checkout.voided"])
        assert again.status_code == 200 and "signing_secret" not in again.json()["data"]
        assert again.json()["data"]["url"] == "http://localhost:9/other"
        assert api.get(PATH).json() == again.json()
        assert SigningSecret.objects.get().secret == first.json()["data"]["signing_secret"]

    def test_belongs_only_to_its_merchant(self, api: Api, rival_api: Api) -> None:
        subscribe(api)
        with nothing_moves():
            refused(rival_api.get(PATH), 404, "subscription_not_found")
            refused(rival_api.delete(PATH), 404, "subscription_not_found")
            refused(rival_api.post("webhooks/secret/rotate"), 404, "subscription_not_found")

    @pytest.mark.rule("subscription.end")
    def test_ends_once_and_its_successor_has_a_new_secret(self, api: Api) -> None:
        secret = subscribe(api).json()["data"]["signing_secret"]
        ended = api.delete(PATH)
        assert (ended.status_code, ended.content) == (204, b"")
        for answer in (api.get(PATH), api.delete(PATH), api.post("webhooks/secret/rotate")):
            refused(answer, 404, "subscription_not_found")
        assert subscribe(api).json()["data"]["signing_secret"] != secret


class TestRotate:
    ROTATE = "webhooks/secret/rotate"

    @pytest.mark.rule("rotation.revoke")
    @pytest.mark.parametrize("flag", ["true", "", 1, 0, None, [], {}], ids=repr)
    def test_accepts_only_a_boolean(self, api: Api, flag: Any) -> None:
        subscribe(api)
        with nothing_moves():
            answer = api.post(self.ROTATE, {"revoke_previous": flag})
            refused(answer, 422, "validation_failed", "revoke_previous")

    @pytest.mark.rule("rotation.revoke")
    @pytest.mark.parametrize(
        ("query", "body"),
        [
            ("True", {}),
            ("1", {}),
            ("", {}),
            ("true&revoke_previous=true", {}),
            ("true", {"revoke_previous": False}),
            ("false", {"revoke_previous": True}),
        ],
    )
    def test_refuses_a_query_that_contradicts_the_body(
        self, api: Api, query: str, body: dict[str, Any]
    ) -> None:
        subscribe(api)
        with nothing_moves():
            answer = api.post(f"{self.ROTATE}?revoke_previous={query}", body)
            refused(answer, 422, "validation_failed", "revoke_previous")

    @pytest.mark.parametrize(
        ("query", "body", "revokes"),
        [
            ("", None, False),
            ("", {}, False),
            ("", {"revoke_previous": False}, False),
            ("", {"revoke_previous": True}, True),
            ("?revoke_previous=true", None, True),
            ("?revoke_previous=true", {"revoke_previous": True}, True),
            ("?revoke_previous=false", {"colour": "green"}, False),
        ],
    )
    def test_shows_until_when_the_previous_secret_signs(
        self, api: Api, query: str, body: dict[str, Any] | None, revokes: bool
    ) -> None:
        first = subscribe(api).json()["data"]["signing_secret"]
        rotated = api.post(f"{self.ROTATE}{query}", body).json()["data"]
        assert set(rotated) == {"signing_secret", "previous_secret_expires_at"}
        assert rotated["signing_secret"] != first
        assert (rotated["previous_secret_expires_at"] is None) == revokes

    def test_ten_times_keeps_only_the_first_three_secrets(self, api: Api) -> None:
        first = subscribe(api).json()["data"]["signing_secret"]
        answers = [api.post(self.ROTATE) for _ in range(10)]
        made = [answer.json()["data"]["signing_secret"] for answer in answers[:2]]
        for answer in answers[2:]:
            refused(answer, 409, "rotation_in_progress")
        live = SigningSecret.objects.exclude(expires_at__lte=timezone.now()).order_by("created_at")
        assert [row.secret for row in live] == [first, *made]
