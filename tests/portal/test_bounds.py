"""If the number of rows has no limit, a page shows only some of the rows, and old rows are deleted."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db.models import Model
from oauth2_provider.models import AccessToken

from config.lib import clock
from payments.models import Merchant
from payments.providers.sandbox import bank
from payments.providers.sandbox import tasks as bank_tasks
from payments.providers.sandbox.models import BankNotification, CardSession, CardToken
from portal import keys, team
from portal import tasks as portal_tasks
from portal.deliveries import log
from portal.mail import outbox as mail_outbox
from portal.models import ApiClient, Invitation, OutboundEmail, Role
from tests import factories
from tests.conftest import Api
from tests.portal import stage
from webhooks import outbox, subscriptions
from webhooks import tasks as webhook_tasks
from webhooks.models import Attempt, EventType, SigningSecret, Subscription

pytestmark = pytest.mark.django_db


def age(row: Model, days: float, **times: datetime) -> UUID:
    """Give a row an id as if the row had been created this many days ago, and return the id."""
    new = UUID(int=clock.first_id(clock.now() - timedelta(days=days)).int | uuid4().int & (1 << 74) - 1)
    type(row)._default_manager.filter(pk=row.pk).update(id=new, **times)
    return new


class TestPages:
    def test_of_keys_shows_the_fifty_that_were_revoked_last(self, acme: Merchant) -> None:
        used = keys.create_client(acme, "In use").client
        for number in range(60):
            made = keys.create_client(acme, f"Old {number:02}").client
            ApiClient.objects.filter(pk=made.pk).update(revoked_at=clock.now() + timedelta(seconds=number))
        page = stage.browser(stage.person(acme, Role.OWNER)).get("/portal/keys").content.decode()
        assert page.count("Old ") == 50 and "Old 59" in page and "Old 09" not in page
        assert used.name in page

    def test_of_a_delivery_shows_the_latest_hundred_attempts_and_any_that_is_named(
        self, acme: Merchant
    ) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        delivery = outbox.emit(acme, EventType.VOIDED, {}, at=clock.now()).deliveries.get()
        facts = {"merchant": acme, "delivery": delivery, "event_type": EventType.VOIDED}
        Attempt.objects.bulk_create(
            Attempt(
                id=clock.new_id_of_same_time(delivery.pk),
                number=number,
                started_at=clock.now(),
                is_delivered=False,
                **facts,
            )
            for number in range(1, 301)
        )
        over = {"status": "parked", "next_attempt_at": None, "ended_at": clock.now()}
        type(delivery).objects.filter(pk=delivery.pk).update(attempt_count=300, **over)
        delivery.refresh_from_db()
        shown = log.delivery_details(acme, delivery)
        assert [step.number for step in shown.steps] == list(range(201, 301))
        assert shown.attempt is not None and shown.attempt.number == 300
        named = log.delivery_details(acme, delivery, number=7).attempt
        assert named is not None and named.number == 7


class TestRowsOfMerchants:
    def test_few_secrets_that_no_longer_sign_remain_after_many_rotations(self, api: Api) -> None:
        api.post("webhooks/subscription", {"url": stage.URL, "event_types": ["*"]})
        for _ in range(30):
            assert api.post("webhooks/secret/rotate", {"revoke_previous": True}).status_code == 200
        assert SigningSecret.objects.count() == subscriptions.MAX_EXPIRED_SECRETS + 1
        newest = SigningSecret.objects.order_by("-created_at")[:2]
        assert newest[0].expires_at is None and newest[1].expires_at is not None

    def test_subscriptions_that_ended_without_a_delivery_are_deleted(self, acme: Merchant, api: Api) -> None:
        asked = {"url": stage.URL, "event_types": ["*"]}
        for _ in range(3):
            api.post("webhooks/subscription", asked)
            api.delete("webhooks/subscription")
        api.post("webhooks/subscription", asked)
        used = Subscription.objects.filter(ended_at=None).get()
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        api.delete("webhooks/subscription")
        api.post("webhooks/subscription", asked)
        webhook_tasks.delete_old_events()
        assert Subscription.objects.count() == 5, "they have just ended"
        ended = Subscription.objects.exclude(ended_at=None)
        ended.update(ended_at=clock.now() - timedelta(hours=2))
        webhook_tasks.delete_old_events()
        left = set(Subscription.objects.values_list("pk", flat=True))
        assert left == {used.pk, subscriptions.read_subscription(acme).pk}
        assert (
            SigningSecret.objects.filter(subscription__in=left).count() == SigningSecret.objects.count() == 2
        )

    def test_tokens_are_deleted_an_hour_after_their_end(self, api: Api) -> None:
        api.get_token()
        old, young = AccessToken.objects.order_by("pk")
        for token, minutes in ((old, 61), (young, 59)):
            token.expires = clock.now() - timedelta(minutes=minutes)
            token.save()
        portal_tasks.delete_expired_tokens()
        assert AccessToken.objects.get() == young

    def test_mails_and_invitations_are_deleted_after_ninety_days(self, acme: Merchant) -> None:
        owner = stage.person(acme, Role.OWNER)
        asked = [team.invite(owner, f"{name}@acme.example", Role.VIEWER) for name in ("old", "young", "open")]
        mail_outbox.send_due()
        mail_outbox.queue_once(acme, "refund_failed", key="waiting")
        over = clock.now() - timedelta(days=80)
        age(asked[0], 90.1, expires_at=over)
        young = age(asked[1], 89.9, expires_at=over)
        is_open = age(asked[2], 90.1)
        old, *others = OutboundEmail.objects.filter(kind="invitation").order_by("pk")
        age(old, 90.1)
        waiting = age(OutboundEmail.objects.get(key="waiting"), 90.1)
        portal_tasks.delete_old_emails()
        assert set(OutboundEmail.objects.values_list("pk", flat=True)) == {
            waiting,
            *(other.pk for other in others),
        }
        assert {row.pk for row in Invitation.objects.all()} == {young, is_open}


class TestRowsOfPayers:
    def test_visits_to_the_card_page_and_card_tokens_are_deleted_after_a_day(self) -> None:
        for _ in range(2):
            bank.open_session(subject=uuid4(), return_url="https://shop.example/", page={})
            bank.tokenise(subject=uuid4(), number="4242424242424242")
        young = CardToken.objects.order_by("pk")[0]
        age(CardSession.objects.order_by("pk")[0], 1.1)
        age(CardToken.objects.order_by("pk")[1], 1.1, used_at=clock.now())
        bank_tasks.delete_old_visits()
        assert CardSession.objects.count() == 1
        assert CardToken.objects.get() == young

    def test_bank_notifications_are_deleted_after_thirty_days(self) -> None:
        told = [
            BankNotification.objects.create(verdict="won", due_at=due) for due in (None, None, clock.now())
        ]
        age(told[0], 30.1)
        left = {age(told[1], 29.9), age(told[2], 30.1)}
        bank_tasks.delete_old_visits()
        assert set(BankNotification.objects.values_list("pk", flat=True)) == left
