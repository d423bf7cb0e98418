"""The bank signs its messages. It retries them at growing intervals until it gives up."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from checkout import tasks
from checkout.models import Checkout
from config.lib import clock
from config.lib.web import http
from payments.models import Operation
from payments.providers.sandbox import journal, notifications
from payments.providers.sandbox.models import BankNotification, Call
from tests.outside import end_of

pytestmark = pytest.mark.django_db


class TestTheBank:
    @pytest.mark.parametrize("status", [500, 404, 302, None])
    def test_sends_a_notification_six_times_with_growing_gaps(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch, status: int | None
    ) -> None:
        def post(*_: Any, **__: Any) -> http.Response:
            if status is None:
                raise http.NoAnswer
            return http.Response(status, b"", {})

        monkeypatch.setattr(http, "post", post)
        notification = journal.write_notification(Call.objects.get())
        gaps = []
        for _ in range(6):
            BankNotification.objects.filter(due_at__isnull=False).update(due_at=clock.now())
            before = clock.now()
            notifications.send_due()
            notification.refresh_from_db()
            gaps.append(notification.due_at and round((notification.due_at - before).total_seconds()))
        assert (gaps, notification.attempts) == ([2, 4, 8, 16, 32, None], 6)
        notifications.send_due()
        notification.refresh_from_db()
        assert notification.attempts == 6

    @pytest.mark.django_db(transaction=True)
    def test_delivers_notifications_over_http(
        self, accepted: Operation, live_server: Any, settings: Settings
    ) -> None:
        settings.BASE_URL = live_server.url
        notifications.send_due()
        assert BankNotification.objects.values_list("attempts", "due_at").get() == (1, None)
        tasks.finish_operations()
        assert end_of(accepted) == ("refunded", "succeeded", "settled")
