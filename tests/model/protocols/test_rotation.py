"""The rotation of a signing secret: the real rotation, claim and signatures take the steps of the model."""

from collections.abc import Hashable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from config.lib import clock
from payments.models import Merchant
from tests import factories
from tests.model.protocols import rotation
from tests.model.protocols.replaying.moves import Move
from tests.model.protocols.replaying.replay import World, replay
from tests.model.protocols.rotation import Rotation, State
from tests.webhooks.story import claim_one, emit, record
from webhooks import headers, signing, subscriptions
from webhooks.models import Delivery, SigningSecret, Subscription

pytestmark = pytest.mark.django_db


class Rotating(World[State]):
    """A subscription whose secrets have numbers in the test.

    `attempt` has the header and the body of the attempt that is under way.
    """

    outside = frozenset({"learn", "forget", "down"})

    def __init__(self, merchant: Merchant) -> None:
        made = factories.subscribe(merchant, url="http://127.0.0.1:9/hook")
        assert made.signing_secret
        self.subscription: Subscription = made.subscription
        self.secrets: tuple[str, ...] = (made.signing_secret,)
        self.attempt = ("", b"", 0)

    def kind(self, move: Move[State], before: State) -> Hashable:
        """Return the kind of a step: our secrets and, if an attempt arrives, the secrets that the receiver knows."""
        return before.secrets, before.attempt, before.receiver if move.act[0] == "verify" else ()

    def take(self, move: Move[State], before: State) -> None:
        merchant = self.subscription.merchant
        match move.act[0]:
            case "rotate":
                self.secrets = (*self.secrets, subscriptions.rotate(merchant).signing_secret)
            case "refused":
                with pytest.raises(subscriptions.RotationInProgress):
                    subscriptions.rotate(merchant)
            case "revoke":
                assert subscriptions.revoke_previous(merchant)
            case "hour":
                SigningSecret.objects.update(expires_at=F("expires_at") - timedelta(hours=1))
            case "claim":
                self._claim()
            case "verify":
                signing.verify(self.attempt[0], self.attempt[1], self._known(before), self.attempt[2])
            case act:
                raise AssertionError(act)

    def _claim(self) -> None:
        """Claim a new delivery, and sign its attempt."""
        due = emit(self.subscription)
        claimed = claim_one()
        signed = headers.signed_headers(claimed, claimed.body)
        self.attempt = (
            signed["X-Service-Signature"],
            claimed.body,
            int(claimed.claimed_at.timestamp()),
        )
        record(claimed, 204)
        assert Delivery.objects.get(pk=due.pk).status == "delivered"

    def _known(self, state: State) -> list[str]:
        return [self.secrets[number - 1] for number in state.receiver]

    def _signed_by(self) -> tuple[int, ...]:
        """Return the numbers of the secrets with which the attempt was signed, in the order of the header."""
        header, body, at = self.attempt
        made = {signing.sign([secret], body, at).split(",")[1]: secret for secret in self.secrets}
        return tuple(self.secrets.index(made[entry]) + 1 for entry in header.split(",")[1:])

    def seen(self, expected: State) -> Any:
        # The times of the secrets are compared roughly, because the test itself takes some seconds.
        until = subscriptions.previous_secret_expiries(self.subscription)
        now = clock.now()
        hours = [None, *(round((at - now).total_seconds() / 3600, 1) for at in until)]
        signing_now = subscriptions.signing_secrets(self.subscription, now)
        numbers = [self.secrets.index(secret) + 1 for secret in signing_now]
        return list(zip(numbers, hours, strict=True)), self._signed_by() if expected.attempt else ()

    def shown(self, state: State) -> Any:
        return [(secret.number, secret.left) for secret in state.secrets], state.attempt


def test_steps_of_each_kind_are_steps_of_the_code(acme: Merchant) -> None:
    taken = replay(Rotation(), Rotating(acme))
    assert taken == {"rotate", "refused", "revoke", "hour", "claim", "verify"}


def test_the_model_has_the_limits_of_the_code() -> None:
    assert timedelta(hours=rotation.GRACE) == subscriptions.GRACE
    assert rotation.MAX_SIGNING == subscriptions.MAX_SIGNING
