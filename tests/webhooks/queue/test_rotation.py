"""Which secrets sign deliveries before, during and after a rotation."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from config.lib import clock
from payments.models import Merchant
from tests import factories
from tests.conftest import Api
from tests.refusals import refused
from tests.webhooks.story import claim_one, record
from webhooks import headers, outbox, signing, subscriptions
from webhooks.models import Delivery, Event, EventType, SigningSecret, Subscription, decrypt_if_personal

pytestmark = pytest.mark.django_db
GRACE = timedelta(hours=2)


@pytest.fixture
def first_secret(acme: Merchant) -> str:
    """Subscribe Acme and return its first secret."""
    made = factories.subscribe(acme, url="http://127.0.0.1:9/hook", event_types=["*"])
    assert made.signing_secret is not None
    return made.signing_secret


def emit_voided(merchant: Merchant) -> Event:
    return outbox.emit(merchant, EventType.VOIDED, {}, at=clock.now())


def signatures() -> list[str]:
    """Attempt the only due delivery, which fails, and return the v1 signatures of its header in order."""
    claimed = claim_one()
    body = decrypt_if_personal(claimed.event_type, claimed.body)
    header = headers.signed_headers(claimed, body)["X-Service-Signature"]
    at, *entries = header.split(",")
    assert at == f"t={int(claimed.claimed_at.timestamp())}"
    record(claimed, 500, "HTTP 500")
    Delivery.objects.update(next_attempt_at=clock.now())
    return entries


def signatures_by(*secrets: str) -> list[str]:
    """Return the signatures that these secrets make for the latest attempt, in the order of the secrets."""
    event = Event.objects.get()
    attempt = event.deliveries.get().attempts.latest("number")
    return signing.sign(secrets, event.plain_body, int(attempt.started_at.timestamp())).split(",")[1:]


def pass_time(by_time: timedelta) -> None:
    """Move the expiry of all secrets into the past by `by_time`, as if that time had passed."""
    SigningSecret.objects.update(expires_at=F("expires_at") - by_time)


class TestRotation:
    @pytest.mark.rule("rotation.grace", "signing.header")
    def test_signs_waiting_deliveries_with_both_secrets_newest_first(
        self, acme: Merchant, first_secret: str
    ) -> None:
        emit_voided(acme)
        second = subscriptions.rotate(acme).signing_secret
        assert signatures() == signatures_by(second, first_secret)

    @pytest.mark.rule("rotation.grace")
    def test_lets_the_old_secret_sign_for_two_hours(self, acme: Merchant, first_secret: str) -> None:
        emit_voided(acme)
        before = clock.now()
        rotated = subscriptions.rotate(acme)
        expires_at = rotated.previous_secret_expires_at
        assert expires_at is not None and before + GRACE <= expires_at <= clock.now() + GRACE
        pass_time(GRACE - timedelta(minutes=1))
        assert signatures() == signatures_by(rotated.signing_secret, first_secret)
        pass_time(timedelta(minutes=1))
        assert signatures() == signatures_by(rotated.signing_secret)

    @pytest.mark.rule("rotation.revoke")
    def test_with_revocation_lets_only_the_new_secret_sign(self, acme: Merchant, first_secret: str) -> None:
        emit_voided(acme)
        assert signatures() == signatures_by(first_secret)
        second = subscriptions.rotate(acme, revoke_previous=True).signing_secret
        assert signatures() == signatures_by(second)

    @pytest.mark.rule("rotation.repeat")
    def test_that_is_repeated_does_not_end_a_secret_early(self, acme: Merchant, first_secret: str) -> None:
        emit_voided(acme)
        second = subscriptions.rotate(acme).signing_secret
        pass_time(timedelta(hours=1))
        third = subscriptions.rotate(acme)
        assert signatures() == signatures_by(third.signing_secret, second, first_secret)
        pass_time(timedelta(hours=1))
        assert signatures() == signatures_by(third.signing_secret, second), "the first had its two hours"
        pass_time(timedelta(minutes=59))
        assert signatures() == signatures_by(third.signing_secret, second)
        pass_time(timedelta(minutes=1))
        assert signatures() == signatures_by(third.signing_secret)

    def test_signs_the_standard_webhooks_header_with_all_secrets_too(
        self, acme: Merchant, first_secret: str
    ) -> None:
        event = emit_voided(acme)
        second, third = (subscriptions.rotate(acme).signing_secret for _ in range(2))
        claimed = claim_one()
        sent = headers.signed_headers(claimed, event.plain_body)
        at = int(claimed.claimed_at.timestamp())
        wanted = signing.standard_headers(
            [third, second, first_secret], event.plain_body, at, event_id=str(event.pk)
        )
        assert sent["webhook-signature"] == wanted["webhook-signature"]
        assert sent["webhook-signature"].count("v1,") == 3

    @pytest.mark.rule("rotation.full")
    def test_is_refused_while_three_secrets_sign_and_says_until_when(
        self, api: Api, acme: Merchant, first_secret: str
    ) -> None:
        emit_voided(acme)
        told = [api.post("webhooks/secret/rotate").json()["data"] for _ in range(2)]
        before = signatures()
        refused_ = refused(api.post("webhooks/secret/rotate"), 409, "rotation_in_progress")
        until = [answer["previous_secret_expires_at"] for answer in reversed(told)]
        assert refused_["details"] == [{"previous_secret_expires_at": at} for at in until]
        assert len(before) == len(signatures()) == 3 and SigningSecret.objects.count() == 3
        SigningSecret.objects.filter(expires_at=SigningSecret.objects.earliest("pk").expires_at).update(
            expires_at=clock.now()
        )
        assert api.post("webhooks/secret/rotate").status_code == 200

    def test_with_revocation_is_possible_while_three_secrets_sign(
        self, api: Api, acme: Merchant, first_secret: str
    ) -> None:
        emit_voided(acme)
        for _ in range(2):
            api.post("webhooks/secret/rotate")
        fourth = api.post("webhooks/secret/rotate", {"revoke_previous": True}).json()["data"]
        assert fourth["previous_secret_expires_at"] is None
        assert signatures() == signatures_by(fourth["signing_secret"])

    def test_within_the_grace_period_gives_the_previous_secret_two_hours(
        self, acme: Merchant, first_secret: str
    ) -> None:
        subscriptions.rotate(acme)
        pass_time(timedelta(hours=1))
        expires_at = subscriptions.rotate(acme).previous_secret_expires_at
        assert expires_at is not None and expires_at > clock.now() + GRACE - timedelta(minutes=1)

    def test_with_revocation_within_the_grace_period_revokes_all_previous_secrets(
        self, acme: Merchant, first_secret: str
    ) -> None:
        emit_voided(acme)
        subscriptions.rotate(acme)
        third = subscriptions.rotate(acme, revoke_previous=True)
        assert third.previous_secret_expires_at is None
        assert signatures() == signatures_by(third.signing_secret)

    def test_after_the_grace_period_does_not_restore_an_old_secret(
        self, acme: Merchant, first_secret: str
    ) -> None:
        emit_voided(acme)
        second = subscriptions.rotate(acme).signing_secret
        pass_time(GRACE)
        third = subscriptions.rotate(acme).signing_secret
        assert signatures() == signatures_by(third, second)

    def test_twenty_expired_secrets_are_retained(self, acme: Merchant, first_secret: str) -> None:
        for _ in range(21):
            newest = subscriptions.rotate(acme, revoke_previous=True).signing_secret
        retained = {row.secret for row in SigningSecret.objects.all()}
        assert len(retained) == 1 + 20
        assert newest in retained
        assert first_secret not in retained

    def test_secret_does_not_sign_at_the_moment_when_it_expires(
        self, acme: Merchant, first_secret: str
    ) -> None:
        rotated = subscriptions.rotate(acme)
        at = rotated.previous_secret_expires_at
        assert at is not None
        subscription = Subscription.objects.get()
        assert subscriptions.signing_secrets(subscription, at) == [rotated.signing_secret]
        before = subscriptions.signing_secrets(subscription, at - timedelta(microseconds=1))
        assert before == [rotated.signing_secret, first_secret]

    def test_does_not_affect_another_merchant(
        self, acme: Merchant, rival: Merchant, first_secret: str
    ) -> None:
        factories.subscribe(rival, url="http://127.0.0.1:9/rival", event_types=["*"])
        subscriptions.rotate(rival, revoke_previous=True)
        emit_voided(acme)
        assert signatures() == signatures_by(first_secret)


class TestSecrets:
    @pytest.mark.rule("signing.secret")
    def test_are_encrypted_in_the_database(self, acme: Merchant, first_secret: str) -> None:
        second = subscriptions.rotate(acme).signing_secret
        with connection.cursor() as cursor:
            cursor.execute("SELECT secret FROM webhooks_signingsecret")
            kept = "".join(text for (text,) in cursor.fetchall())
        for secret in (first_secret, second):
            assert secret.removeprefix(signing.SECRET_PREFIX) not in kept
        assert {row.secret for row in SigningSecret.objects.all()} == {first_secret, second}

    def test_expire_at_the_announced_time(self, api: Api, first_secret: str) -> None:
        told = api.post("webhooks/secret/rotate").json()["data"]["previous_secret_expires_at"]
        kept = SigningSecret.objects.exclude(expires_at=None).get()
        assert (kept.secret, clock.iso(kept.expires_at)) == (first_secret, told)
