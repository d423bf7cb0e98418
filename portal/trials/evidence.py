"""The evidence from a trial: the attempts, calls and states of its order, read from the usual tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q, QuerySet
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
    """A piece of evidence: its time, text and colour, and the address of a page with more details."""

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
    refund_failed_at: datetime | None = None  # when the refund's failure was recorded
    times_asked_again: int = 0  # only counted in the case "unresolved"
    signatures: int = 0  # how many secrets signed the first attempt; only set in the case "rotate"

    def attempts_of(self, event_type: EventType) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.event_type == event_type]

    def delivery_of(self, event_type: EventType) -> Delivery | None:
        return next((delivery for delivery in self.deliveries if delivery.event_type == event_type), None)

    @property
    def authorized(self) -> list[Attempt]:
        """The attempts to deliver checkout.authorized."""
        return self.attempts_of(EventType.AUTHORIZED)

    @property
    def captures(self) -> list[ApiCall]:
        """The capture calls that were answered with 200. An idempotent replay is not recorded as a call."""
        return [call for call in self.calls if entries.verb_of(call) == "capture" and call.status == 200]

    @property
    def is_in_doubt(self) -> bool:
        """Whether a capture call was answered with 504, because its outcome was unknown."""
        return any(entries.verb_of(call) == "capture" and call.status == 504 for call in self.calls)

    def has_called_since(self, at: datetime, *verbs: str) -> bool:
        """Return whether, since `at`, the merchant's server has read the order or made one of these calls."""
        return any(call.created_at >= at and entries.verb_of(call) in ("read", *verbs) for call in self.calls)


def read_evidence(trial: Trial, checkout_uuid: UUID) -> TrialEvidence:
    """Return the current facts about a trial's order. Raises Checkout.DoesNotExist."""
    checkout = Checkout.objects.select_related("merchant").get(pk=checkout_uuid, merchant=trial.merchant_id)
    events = list(lookup.events_about(checkout.pk).values_list("pk", flat=True))
    deliveries = list(lookup.deliveries_of(events))
    rows = lookup.attempts_of_deliveries([delivery.pk for delivery in deliveries])
    attempts = list(rows.order_by("started_at", "pk")[:MAX_SHOWN])
    id_range = partitions.ids_made_since(checkout.pk)
    calls = ApiCall.objects.filter(merchant=trial.merchant_id, checkout_uuid=checkout.pk, pk__range=id_range)
    return TrialEvidence(
        now=clock.now(),
        trial=trial,
        checkout=checkout,
        deliveries=deliveries,
        attempts=attempts,
        calls=list(calls.order_by("created_at", "pk")[:MAX_SHOWN]),
        refund=Refund.objects.filter(checkout=checkout).order_by("created_at").first(),
        refund_failed_at=_refund_failed_at(checkout),
        times_asked_again=_count_repeats(calls, checkout) if trial.case == "unresolved" else 0,
        signatures=_signature_count(deliveries, attempts) if trial.case == "rotate" else 0,
    )


def _refund_failed_at(checkout: Checkout) -> datetime | None:
    failures = Change.objects.filter(checkout=checkout, origin=Status.REFUNDING, to=Status.CAPTURED)
    return failures.order_by("created_at").values_list("created_at", flat=True).first()


def _count_repeats(calls: QuerySet[ApiCall], checkout: Checkout) -> int:
    """Return how often the server captured or read the order between a capture's 504 and the end of the hold.

    Reads of lists do not count, because a server can list its orders without checking this one.
    """
    of_order = calls.filter(path__contains=str(checkout.pk))
    doubt = of_order.filter(method="POST", status=504).order_by("created_at").first()
    if doubt is None:
        return 0
    is_question = Q(method="GET") | Q(path__endswith="/capture")
    end = checkout.voided_at or clock.now()
    return of_order.filter(is_question, created_at__gt=doubt.created_at, created_at__lt=end).count()


def _signature_count(deliveries: Sequence[Delivery], attempts: Sequence[Attempt]) -> int:
    """Return how many secrets signed the first attempt, or 0 before the first attempt."""
    for delivery in deliveries:
        if attempts and attempts[0].delivery_id == delivery.pk:
            return len(subscriptions.signing_secrets(delivery.subscription, attempts[0].started_at))
    return 0


def times_in_words(number: int) -> str:
    """Return a number of times in words: "not once", "once", or "7 times"."""
    return {0: "not once", 1: "once"}.get(number, f"{number} times")


def evidence_in_words(evidence: TrialEvidence) -> list[Line]:
    """Return the evidence as lines of text, sorted by time."""
    lines = [*_state_lines(evidence), *_attempt_lines(evidence), *_call_lines(evidence)]
    return sorted(lines, key=lambda line: line.at)[:MAX_SHOWN]


def _state_lines(evidence: TrialEvidence) -> Iterator[Line]:
    checkout = evidence.checkout
    page = reverse("portal_checkout", args=[checkout.pk])
    if checkout.authorized_at:
        card = CASES[evidence.trial.case].card
        paid = f"Order {checkout.merchant_order_id} paid with the card ending {card[-4:]}, and held"
        yield _evidence_line(checkout.authorized_at, paid, "", page)
    if checkout.captured_at:
        yield _evidence_line(checkout.captured_at, "Captured", "done", page)
    if evidence.refund:
        yield _evidence_line(evidence.refund.created_at, "The sandbox began a refund", "", page)
    if evidence.refund_failed_at:
        yield _evidence_line(
            evidence.refund_failed_at, "The bank refused the refund: the order is captured again", "", page
        )
    if checkout.voided_at and evidence.trial.case == "unresolved":
        times = times_in_words(evidence.times_asked_again)
        yield _evidence_line(checkout.voided_at, f"Until then, your server asked again {times}", "", page)
    if checkout.voided_at:
        yield _evidence_line(checkout.voided_at, "Released: no money was taken", "", page)


def _attempt_lines(evidence: TrialEvidence) -> Iterator[Line]:
    if evidence.signatures > 1:
        page = reverse("portal_webhooks")
        yield _evidence_line(
            evidence.attempts[0].started_at, f"{evidence.signatures} secrets signed the event", "", page
        )
    for attempt in evidence.attempts:
        page = reverse("portal_delivery", args=[attempt.delivery_id]) + f"?attempt={attempt.number}"
        tone = {True: "done", False: "stop", None: ""}[attempt.is_delivered]
        is_by_sandbox = attempt.actor == outbox.SANDBOX and not attempt.is_delivered
        yield _evidence_line(attempt.started_at, _attempt_words(attempt), "" if is_by_sandbox else tone, page)


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


def _call_lines(evidence: TrialEvidence) -> Iterator[Line]:
    for call in evidence.calls:
        page = f"{reverse('portal_requests')}?{urlencode({'q': call.request_id})}"
        code = f" {call.error_code}" if call.error_code else ""
        action = "read the order" if entries.verb_of(call) == "read" else f"called {entries.verb_of(call)}"
        words = f"Your server {action}; we answered {call.status}{code}"
        yield _evidence_line(call.created_at, words, "stop" if call.status >= 500 else "", page)


def _evidence_line(at: datetime, words: str, tone: str, href: str) -> Line:
    return Line(clock.iso(at) or "", words, tone, href)
