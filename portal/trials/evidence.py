"""The evidence of a trial: the attempts, calls and states of its order, read from the usual tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from checkout.models import ApiCall, Change, Checkout, Refund
from checkout.states import Status
from config.lib import clock
from config.lib.database import partitions
from portal.models import Trial
from portal.orders import entries
from portal.templatetags.portal import seconds
from portal.trials.cases import CASES
from webhooks import health, lookup, outbox, subscriptions
from webhooks.delivery import describe_error
from webhooks.models import Attempt, Delivery, EventType

MAX_SHOWN = 30


class Line(NamedTuple):
    """A piece of evidence: its time, text and colour, and the address of the page that shows it."""

    at: str
    words: str
    tone: str
    href: str


@dataclass(frozen=True)
class TrialEvidence:
    """The current facts about a trial's order. Each list is sorted by time."""

    now: datetime
    trial: Trial
    checkout: Checkout
    deliveries: Sequence[Delivery]
    attempts: Sequence[Attempt]
    calls: Sequence[ApiCall]
    refund: Refund | None = None
    came_back_at: datetime | None = None  # when the refund was recorded as failed
    signatures: int = 0  # how many secrets signed the first attempt; only counted in the case "rotate"

    def attempts_of(self, event_type: EventType) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.event_type == event_type]

    def delivery_of(self, event_type: EventType) -> Delivery | None:
        return next((found for found in self.deliveries if found.event_type == event_type), None)

    @property
    def authorized(self) -> list[Attempt]:
        """The attempts of checkout.authorized."""
        return self.attempts_of(EventType.AUTHORIZED)

    @property
    def captures(self) -> list[ApiCall]:
        """The capture calls that were answered 200. An idempotent replay is not recorded as a call."""
        return [call for call in self.calls if _verb_of_call(call) == "capture" and call.status == 200]

    @property
    def is_in_doubt(self) -> bool:
        """Whether a capture call was answered 504, so that its outcome was unknown."""
        return any(_verb_of_call(call) == "capture" and call.status == 504 for call in self.calls)

    def asked_since(self, at: datetime, *verbs: str) -> bool:
        """Return whether the merchant's server read the order since `at`, or made one of these calls."""
        return any(call.created_at >= at and _verb_of_call(call) in ("read", *verbs) for call in self.calls)


def read_evidence(trial: Trial, checkout_uuid: UUID) -> TrialEvidence:
    """Return the current facts of the order that a trial has made. Raises Checkout.DoesNotExist."""
    checkout = Checkout.objects.select_related("merchant").get(pk=checkout_uuid, merchant=trial.merchant_id)
    events = list(lookup.events_about(checkout.pk).values_list("pk", flat=True))
    deliveries = list(lookup.deliveries_of(events))
    rows = lookup.attempts_of_deliveries([found.pk for found in deliveries])
    attempts = list(rows.order_by("started_at", "pk")[:MAX_SHOWN])
    told = partitions.ids_made_since(checkout.pk)
    calls = ApiCall.objects.filter(merchant=trial.merchant_id, checkout_uuid=checkout.pk, pk__range=told)
    return TrialEvidence(
        now=clock.now(),
        trial=trial,
        checkout=checkout,
        deliveries=deliveries,
        attempts=attempts,
        calls=list(calls.order_by("created_at", "pk")[:MAX_SHOWN]),
        refund=Refund.objects.filter(checkout=checkout).order_by("created_at").first(),
        came_back_at=_came_back_at(checkout),
        signatures=_signature_count(deliveries, attempts) if trial.case == "rotate" else 0,
    )


def _came_back_at(checkout: Checkout) -> datetime | None:
    back = Change.objects.filter(checkout=checkout, origin=Status.REFUNDING, to=Status.CAPTURED)
    return back.order_by("created_at").values_list("created_at", flat=True).first()


def _signature_count(deliveries: Sequence[Delivery], attempts: Sequence[Attempt]) -> int:
    """Return how many secrets signed the first attempt, or 0 before the first attempt."""
    for delivery in deliveries:
        if attempts and attempts[0].delivery_id == delivery.pk:
            return len(subscriptions.signing_secrets(delivery.subscription, attempts[0].started_at))
    return 0


def evidence_in_words(seen: TrialEvidence) -> list[Line]:
    """Return the evidence in words, by time."""
    found = [*_state_lines(seen), *_attempt_lines(seen), *_call_lines(seen)]
    return sorted(found, key=lambda line: line.at)[:MAX_SHOWN]


def _state_lines(seen: TrialEvidence) -> Iterator[Line]:
    checkout = seen.checkout
    page = reverse("portal_checkout", args=[checkout.pk])
    if checkout.authorized_at:
        card = CASES[seen.trial.case].card
        paid = f"Order {checkout.merchant_order_id} paid with the card ending {card[-4:]}, and held"
        yield _evidence_line(checkout.authorized_at, paid, "", page)
    if checkout.captured_at:
        yield _evidence_line(checkout.captured_at, "Captured", "done", page)
    if seen.refund:
        yield _evidence_line(seen.refund.created_at, "The sandbox began a refund", "", page)
    if seen.came_back_at:
        yield _evidence_line(
            seen.came_back_at, "The bank refused the refund: the order is captured again", "", page
        )
    if checkout.voided_at:
        yield _evidence_line(checkout.voided_at, "Released: no money was taken", "", page)


def _attempt_lines(seen: TrialEvidence) -> Iterator[Line]:
    if seen.signatures > 1:
        page = reverse("portal_webhooks")
        yield _evidence_line(
            seen.attempts[0].started_at, f"{seen.signatures} secrets signed the event", "", page
        )
    for attempt in seen.attempts:
        page = reverse("portal_delivery", args=[attempt.delivery_id]) + f"?attempt={attempt.number}"
        tone = {True: "done", False: "stop", None: ""}[attempt.is_delivered]
        is_ours = attempt.actor == outbox.SANDBOX and not attempt.is_delivered
        yield _evidence_line(attempt.started_at, _attempt_words(attempt), "" if is_ours else tone, page)


def _attempt_words(attempt: Attempt) -> str:
    sent = f"{attempt.event_type}, attempt {attempt.number}"
    if attempt.error_message == health.DROPPED_BY_SANDBOX:
        return f"{sent}: the sandbox dropped your answer"
    if attempt.actor == outbox.SANDBOX and attempt.is_delivered:
        sent = f"{attempt.event_type}, kept back by the sandbox"
    if attempt.is_delivered is None:
        return f"{sent}, is being sent"
    if attempt.error_message == health.REFUSED_BY_SANDBOX:
        return f"{sent}: the sandbox answered 500 in your place"
    if attempt.http_status is None:
        return f"{sent}, no answer: {describe_error(attempt.error_message)}"
    return f"{sent}, answered {attempt.http_status} in {seconds(attempt.duration_ms)}"


def _call_lines(seen: TrialEvidence) -> Iterator[Line]:
    for call in seen.calls:
        page = f"{reverse('portal_requests')}?{urlencode({'q': call.request_id})}"
        code = f" {call.error_code}" if call.error_code else ""
        did = "read the order" if _verb_of_call(call) == "read" else f"called {_verb_of_call(call)}"
        words = f"Your server {did}; we answered {call.status}{code}"
        yield _evidence_line(call.created_at, words, "stop" if call.status >= 500 else "", page)


def _verb_of_call(call: ApiCall) -> str:
    return entries.verb_of(call)


def _evidence_line(at: datetime, words: str, tone: str, href: str) -> Line:
    return Line(clock.iso(at) or "", words, tone, href)
