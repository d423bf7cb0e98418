"""If PostgreSQL refuses to store a result, the sender retries, at last without the response, and gives up."""

from dataclasses import replace

import pytest
from django.db import DatabaseError

from tests.webhooks.story import emit, subscribe
from webhooks import delivery, delivery_sender
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db(transaction=True)


class TestTrouble:
    def claimed(self, excerpt: str = "poison\x00") -> tuple[Delivery, delivery.Result]:
        due = emit(subscribe())
        (claimed,) = delivery.claim(slots=1, general_slots=1)
        lease = (claimed.delivery_id, claimed.lease_token)
        return due, delivery.Result(*lease, 200, None, 5, excerpt)

    def test_omits_the_receivers_response_if_it_cannot_be_stored(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delivery_sender, "RECORD_PAUSES", (0.0, 0.0, 0.0))
        due, result = self.claimed()
        with pytest.raises(DatabaseError):
            delivery.record_results([result])
        delivery_sender.record_with_retries([result])
        due.refresh_from_db()
        assert (due.status, due.attempts.get().response_excerpt) == ("delivered", "")

    def test_with_one_result_does_not_lose_the_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(delivery_sender, "RECORD_PAUSES", (0.0, 0.0, 0.0))
        (unknown, never), (poisoned, silenced), (fine, whole) = (
            self.claimed(),
            self.claimed(),
            self.claimed("thanks"),
        )
        Delivery.objects.filter(pk=unknown.pk).update(event_type="of.a.later.release")
        failed = [replace(result, http_status=500) for result in (never, silenced)]
        delivery_sender.record_with_retries([*failed, whole])
        for due in (unknown, poisoned, fine):
            due.refresh_from_db()
        assert (fine.status, fine.attempts.get().response_excerpt) == ("delivered", "thanks")
        assert (poisoned.attempts.get().http_status, poisoned.lease_token) == (500, None)
        assert str(unknown.lease_token) == never.lease_token, "nobody sends it again and again"

    def test_gives_up_without_raising(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(delivery_sender, "RECORD_PAUSES", (0.0, 0.0, 0.0))
        tries = []

        def fail(results: list[delivery.Result]) -> None:
            tries.append([result.excerpt for result in results])
            raise DatabaseError("gone")

        _, result = self.claimed()
        monkeypatch.setattr(delivery, "record_results", fail)
        delivery_sender.record_with_retries([result])
        assert tries == [["poison\x00"], ["poison\x00"], ["poison\x00"], [""]]
