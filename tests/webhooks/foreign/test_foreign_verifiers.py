"""Third-party libraries verify the deliveries that we send over HTTP, and each test vector."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from config.lib import clock
from payments.models import Merchant
from portal.developer_docs import guide
from tests.webhooks import vectors
from tests.webhooks.foreign import verdicts
from tests.webhooks.foreign.verdicts import Case, Verifiers
from tests.webhooks.receivers.endpoint import Receiver
from tests.webhooks.vectors import Vector
from webhooks import delivery_sender, outbox, signing, subscriptions
from webhooks.models import EventType, SigningSecret, Subscription

ACCEPTED_BY_ALL = dict.fromkeys(verdicts.ALL, True)
REFUSED_BY_ALL = dict.fromkeys(verdicts.ALL, False)


@pytest.fixture(scope="module")
def verifiers() -> Iterator[Verifiers]:
    with verdicts.running() as running:
        yield running


class Shop(NamedTuple):
    """Acme's subscription, its endpoint, and the verifiers for the requests that arrive at the endpoint."""

    merchant: Merchant
    secret: str
    receiver: Receiver
    sender: delivery_sender.Sender
    verifiers: Verifiers

    def receive(self) -> Case:
        """Emit an event, and wait for its delivery. Return the received request together with Acme's first secret."""
        expected = len(self.receiver.requests) + 1
        payload = {"merchant_order_id": "A-20417", "name": "Zoë 🎟", "amount": 100}
        outbox.emit(self.merchant, EventType.VOIDED, payload, at=clock.now())
        self.sender.wake()
        deadline = time.monotonic() + 10
        while len(self.receiver.requests) < expected:
            assert time.monotonic() < deadline, "nothing was delivered"
            time.sleep(0.005)
        headers, body = self.receiver.requests[-1]
        return Case({name.lower(): text for name, text in headers.items()}, body, self.secret)

    def verdicts(self, case: Case) -> dict[str, bool]:
        """For each verifier, return whether it accepts the case now."""
        return {verifier: accepts for verifier, (accepts,) in self.verifiers.accept([case]).items()}


@pytest.fixture
def shop(transactional_db: None, verifiers: Verifiers) -> Iterator[Shop]:
    receiver, sender = Receiver(), delivery_sender.Sender(slots=10, allow_loopback=True)
    merchant, secret = Merchant.objects.create(name="Acme"), signing.new_secret()
    subscription = Subscription.objects.create(merchant=merchant, url=receiver.url, event_types=["*"])
    SigningSecret.objects.create(subscription=subscription, secret=secret)
    sender.start()
    yield Shop(merchant, secret, receiver, sender, verifiers)
    sender.stop(0)
    receiver.close()


def with_changed_byte(case: Case) -> Case:
    return case._replace(body=case.body.replace(b'"amount":100', b'"amount":900'))


def with_changed_signatures(case: Case) -> Case:
    """Replace the first character of every signature."""

    def changed(header: str, mark: str) -> str:
        start, *signatures = header.split(mark)
        return mark.join([start, *(("1" if s[0] == "0" else "0") + s[1:] for s in signatures)])

    marks = {"x-service-signature": "v1=", "webhook-signature": "v1,"}
    return case._replace(
        headers={n: changed(text, marks[n]) if n in marks else text for n, text in case.headers.items()}
    )


def signed_at(case: Case, at: int) -> Case:
    """Sign the case again with its secret, as the service would have signed it at the time `at`."""
    again = {
        "x-service-signature": signing.sign([case.secret], case.body, at),
        **signing.standard_headers([case.secret], case.body, at, event_id=case.headers["webhook-id"]),
    }
    return case._replace(headers={**case.headers, **again})


def signatures(headers: Mapping[str, str]) -> tuple[int, int]:
    """Return the number of signatures in our header, and in the Standard Webhooks header."""
    return headers["x-service-signature"].count("v1="), headers["webhook-signature"].count("v1,")


class TestADelivery:
    @pytest.mark.rule("signing.foreign", "signing.standard")
    def test_is_accepted_by_all_verifiers_and_refused_by_all_if_changed_or_stale(self, shop: Shop) -> None:
        received = shop.receive()
        now = int(time.time())
        assert signatures(received.headers) == (1, 1)
        assert shop.verdicts(received) == ACCEPTED_BY_ALL
        assert shop.verdicts(with_changed_byte(received)) == REFUSED_BY_ALL
        assert shop.verdicts(with_changed_signatures(received)) == REFUSED_BY_ALL
        assert shop.verdicts(received._replace(secret=signing.new_secret())) == REFUSED_BY_ALL
        assert shop.verdicts(signed_at(received, now - 290)) == ACCEPTED_BY_ALL
        assert shop.verdicts(signed_at(received, now - 301)) == REFUSED_BY_ALL

    def test_is_accepted_with_both_secrets_in_the_grace_period_and_then_with_the_new_one(
        self, shop: Shop
    ) -> None:
        rotated = subscriptions.rotate(shop.merchant)
        received = shop.receive()
        assert signatures(received.headers) == (2, 2)
        for secret in (shop.secret, rotated.signing_secret):
            case = received._replace(secret=secret)
            assert shop.verdicts(case) == ACCEPTED_BY_ALL
            assert shop.verdicts(with_changed_byte(case)) == REFUSED_BY_ALL
            assert shop.verdicts(with_changed_signatures(case)) == REFUSED_BY_ALL
            assert shop.verdicts(signed_at(case, int(time.time()) - 301)) == REFUSED_BY_ALL
        lapsed = clock.now() - timedelta(seconds=1)
        assert SigningSecret.objects.filter(expires_at__gt=clock.now()).update(expires_at=lapsed) == 1
        late = shop.receive()
        assert signatures(late.headers) == (1, 1)
        assert shop.verdicts(late) == REFUSED_BY_ALL
        assert shop.verdicts(late._replace(secret=rotated.signing_secret)) == ACCEPTED_BY_ALL

    def test_is_accepted_only_with_the_new_secret_once_the_old_one_is_revoked(self, shop: Shop) -> None:
        assert shop.verdicts(shop.receive()) == ACCEPTED_BY_ALL
        rotated = subscriptions.rotate(shop.merchant, revoke_previous=True)
        received = shop.receive()
        assert signatures(received.headers) == (1, 1)
        assert shop.verdicts(received) == REFUSED_BY_ALL
        assert shop.verdicts(received._replace(secret=rotated.signing_secret)) == ACCEPTED_BY_ALL


# For each library, the vectors that are accepted either only by the library or only by our verifier (rule
# signing.verify). The service never sends such headers.
LAX_TIMES = {"t has a zero before it", "an equals sign after t", "t and more", "t is milliseconds"}
LAX_COMMAS = {"a comma at the end", "a comma at the start", "two commas", "a word among the entries"}
DIFFERENT = {
    "stripe for Python": LAX_TIMES
    | LAX_COMMAS
    | {"t twice, the same", "t twice, the right one first", "a signature that is not ASCII beside"},
    "stripe for Node": LAX_TIMES
    | LAX_COMMAS
    | {"t twice, the same", "t twice, the right one last", "a signature that is not ASCII beside"}
    | {"an empty signature beside"},
    "standardwebhooks for Python": set(),
    "standardwebhooks for Node": set(),
}


def is_judged_by_stripe(vector: Vector) -> bool:
    """Return whether Stripe's library checks the property that the vector tests.

    The library's `verify_header` does not parse the JSON, and accepts times in the future.
    """
    is_ahead = vector.timestamp is not None and vector.timestamp > vector.now
    return vector.verdict != "invalid_json" and not (
        is_ahead and vector.verdict == "timestamp_out_of_tolerance"
    )


def disagreeing(verifiers: Verifiers, verifier: str, chosen: list[Vector]) -> set[str]:
    """Return the names of the vectors on which the verifier's verdict differs from the expected verdict.

    The names have no prefix.
    """
    (now,) = {vector.now for vector in chosen}
    cases = [(v, Case(v.headers, v.body, secret)) for v in chosen for secret in v.secrets]
    answers = verifiers.accept([case for _, case in cases], now=now)[verifier]
    accepted = {vector.name for (vector, _), accepts in zip(cases, answers, strict=True) if accepts}
    return {v.name.split(": ", 1)[1] for v in chosen if (v.name in accepted) != v.is_accepted}


def wrongly_accepted(verifiers: Verifiers, verifier: str) -> list[Vector]:
    """Return the vectors that the verifier accepts although a receiver must refuse them."""
    (now,) = {vector.now for vector in vectors.X_SERVICE_SIGNATURE}
    refused = [vector for vector in vectors.X_SERVICE_SIGNATURE if not vector.is_accepted]
    cases = [(v, Case(v.headers, v.body, secret)) for v in refused for secret in v.secrets]
    answers = verifiers.accept([case for _, case in cases], now=now)[verifier]
    accepted = {vector.name for (vector, _), accepts in zip(cases, answers, strict=True) if accepts}
    return [vector for vector in refused if vector.name in accepted]


def documented_row(language: str) -> list[str]:
    """In the documentation's table of Stripe's functions, return the cells for a language."""
    (row,) = re.findall(rf"^\| {language} \|.*`.*", guide.GUIDE, re.M)
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.rule("docs.stripe")
class TestDocumentation:
    """The documentation describes correctly how Stripe's libraries behave."""

    @pytest.mark.parametrize("verifier", verdicts.STRIPE)
    def test_names_the_function_and_what_it_accepts(self, verifiers: Verifiers, verifier: str) -> None:
        language = verifier.removeprefix("stripe for ")
        _, function, without_tolerance, in_future = documented_row(language)
        assert function.strip("`") == verdicts.DOCUMENTED[verifier]
        accepted = wrongly_accepted(verifiers, verifier)
        ahead = [v for v in accepted if v.verdict == "timestamp_out_of_tolerance"]
        assert in_future == "accepted" and len(ahead) >= 4
        assert all(v.timestamp is not None and v.timestamp > v.now for v in ahead)
        no_object = [v for v in vectors.X_SERVICE_SIGNATURE if v.verdict == "invalid_json"]
        assert {v.name for v in no_object if v in accepted} >= {
            "invalid_json: array",
            "invalid_json: nothing",
        }
        assert without_tolerance == "not checked"
        assert f"the one for {language} accepts {len(accepted)}" in guide.GUIDE
        assert f"the {len(vectors.X_SERVICE_SIGNATURE)} cases of `X-Service-Signature`" in guide.GUIDE

    def test_warns_of_the_missing_tolerance(self, verifiers: Verifiers) -> None:
        (old,) = [v for v in vectors.X_SERVICE_SIGNATURE if v.name == "timestamp_out_of_tolerance: 301 s old"]
        case = Case(old.headers, old.body, old.secrets[0])
        for verifier in verdicts.STRIPE:
            assert verifiers.accept([case], now=old.now, tolerance=None)[verifier] == [True]
            assert verifiers.accept([case], now=old.now)[verifier] == [False]

    def test_recommends_standard_webhooks_first(self) -> None:
        assert guide.GUIDE.index("Use a library of Standard Webhooks") < guide.GUIDE.index(
            "Stripe's libraries"
        )
        (sample,) = re.findall(r"```python\n(from standardwebhooks.*?)```", guide.GUIDE, re.S)
        vector = next(v for v in vectors.STANDARD_WEBHOOKS if v.is_accepted and len(v.secrets) == 1)
        request = SimpleNamespace(headers=dict(vector.headers))
        known = {"signing_secret": vector.secrets[0], "raw_body": vector.body, "request": request}
        with verdicts.judged_at(vector.now):
            exec(sample, known)
        assert known["event"] == json.loads(vector.body)


class TestVectors:
    @pytest.mark.parametrize("verifier", verdicts.STRIPE)
    def test_stripe_agrees_where_it_judges(self, verifiers: Verifiers, verifier: str) -> None:
        chosen = [vector for vector in vectors.X_SERVICE_SIGNATURE if is_judged_by_stripe(vector)]
        assert len(chosen) > 120
        assert disagreeing(verifiers, verifier, chosen) == DIFFERENT[verifier]

    @pytest.mark.parametrize("verifier", verdicts.STANDARD)
    def test_standard_webhooks_agrees(self, verifiers: Verifiers, verifier: str) -> None:
        assert len(vectors.STANDARD_WEBHOOKS) > 50
        assert disagreeing(verifiers, verifier, vectors.STANDARD_WEBHOOKS) == DIFFERENT[verifier]
