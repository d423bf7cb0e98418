"""The merchant's tasks: failed refunds and deliveries, failing or unapproved endpoints, disputes, lost holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Case, Exists, F, OuterRef, QuerySet, When
from django.db.models.functions import Now
from django.utils.functional import cached_property

from checkout.models import Checkout, Refund
from checkout.remedies import reasons
from checkout.states import Status, VoidReason
from payments import disputes, money
from payments.models import Dispute, Merchant
from portal.orders.entries import card_of
from portal.templatetags.portal import deadline, when
from webhooks import resending
from webhooks.models import PERSONAL, Delivery, Endpoint, Subscription

MAXIMUM = 1000  # pages show a larger number as "more than 1,000"
LOOK_BACK = timedelta(days=7)


@dataclass(frozen=True)
class MerchantTask:
    """A task for the merchant: the problem, the remedy, and the page on which the merchant applies it."""

    icon: str
    tone: str
    title: str
    text: str
    address: str
    button: str


def parked_deliveries(merchant: Merchant) -> QuerySet[Delivery]:
    """Return the deliveries that were parked in the last seven days and are still useful to the merchant.

    Closed deliveries, deliveries about holds that have ended, and test events are left out.
    """
    rows = resending.parked_deliveries(merchant).filter(ended_at__gte=Now() - LOOK_BACK)
    return rows.exclude(resending.HOLD_IS_OVER)


def failed_refunds(**conditions: Any) -> QuerySet[Refund]:
    """Return the failed refunds that match the conditions and whose checkout has no pending or settled refund.

    Refunds that were returned after they settled are left out, because operators handle them.
    """
    tried_again = Refund.objects.filter(checkout=OuterRef("checkout"), status__in=["pending", "settled"])
    failed = Refund.objects.filter(~Exists(tried_again), status=Refund.Status.FAILED, **conditions)
    return failed.exclude(checkout__status=Status.REFUNDED)


def returned_refunds(**conditions: Any) -> QuerySet[Refund]:
    """Return the refunds that match the conditions, were returned after they settled, and are still owed."""
    return Refund.objects.filter(
        status=Refund.Status.FAILED, settled_at__isnull=False, checkout__status=Status.REFUNDED, **conditions
    )


def lost_holds(merchant: Merchant) -> QuerySet[Checkout]:
    """Return the holds from the last seven days that ended without a capture."""
    rows = Checkout.objects.filter(
        merchant=merchant, status=Status.VOIDED, void_reason=VoidReason.AUTH_EXPIRED
    )
    return rows.filter(created_at__gte=Now() - LOOK_BACK)


def open_disputes(merchant: Merchant) -> QuerySet[Dispute]:
    """Return the merchant's open disputes, sorted by the deadline for evidence.

    Disputes whose deadline has passed come last.
    """
    rows = Dispute.objects.filter(payment__merchant=merchant, status=Dispute.Status.OPEN)
    is_late = Case(When(respond_by__lte=Now(), then=1), default=0)
    return rows.order_by(is_late, F("respond_by").asc(nulls_last=True), "pk")


class WaitingItems:
    """The problems of one merchant that need attention. Each kind is read only once, when it is first needed."""

    def __init__(self, merchant: Merchant) -> None:
        self.merchant = merchant

    @cached_property
    def parked(self) -> int:
        """The number of parked deliveries, at most MAXIMUM + 1."""
        return parked_deliveries(self.merchant)[: MAXIMUM + 1].count()

    @cached_property
    def subscription(self) -> Subscription | None:
        """The merchant's current subscription, together with its endpoint."""
        rows = Subscription.objects.filter(merchant=self.merchant, ended_at=None)
        return rows.select_related("endpoint").first()

    @property
    def failing(self) -> Endpoint | None:
        """The merchant's endpoint if it is failing, else None."""
        endpoint: Endpoint | None = getattr(self.subscription, "endpoint", None)
        return endpoint if endpoint and endpoint.failing_since else None

    @property
    def unapproved(self) -> str:
        """The webhook address if it waits for approval to receive personal data, else ""."""
        found = self.subscription
        if found is None or found.is_approved or not {"*", *PERSONAL} & set(found.event_types):
            return ""
        return found.url

    @cached_property
    def refunds(self) -> list[Refund]:
        """The failed refunds, newest first."""
        return [row for row in self._unpaid_refunds if row.checkout.status != Status.REFUNDED]

    @cached_property
    def returned(self) -> list[Refund]:
        """The returned refunds that are still owed, newest first."""
        return [row for row in self._unpaid_refunds if row.checkout.status == Status.REFUNDED]

    @cached_property
    def _unpaid_refunds(self) -> list[Refund]:
        rows = failed_refunds(merchant=self.merchant) | returned_refunds(merchant=self.merchant)
        return list(rows.select_related("checkout").order_by("-created_at")[: MAXIMUM + 1])

    @cached_property
    def holds(self) -> list[tuple[int, str]]:
        """The amount in minor units and the currency of each lost hold."""
        return list(lost_holds(self.merchant).values_list("amount", "currency")[: MAXIMUM + 1])

    @cached_property
    def has_lost_holds(self) -> bool:
        """Whether there are lost holds. The menu on every page needs only this, not the amounts in `holds`."""
        return lost_holds(self.merchant).exists()

    @cached_property
    def disputes(self) -> list[Dispute]:
        """The open disputes, the most urgent first."""
        return list(open_disputes(self.merchant).select_related("payment")[: MAXIMUM + 1])

    def menu_counts(self) -> dict[str, int]:
        """Return the counts in the menu, keyed by the URL name of the menu entry.

        The count for the home page is the number of kinds of problems.
        """
        problems = (
            self.parked or self.failing,
            self.unapproved,
            self.refunds,
            self.returned,
            self.disputes,
            self.has_lost_holds,
        )
        return {
            "portal_home": sum(bool(problem) for problem in problems),
            "portal_deliveries": min(self.parked, MAXIMUM),
        }

    def list_tasks(self) -> list[MerchantTask]:
        """Return the merchant's tasks, the most urgent first."""
        deliveries = _delivery_task(self.parked, self.failing)
        refunds = [_refund_task(self.refunds), _returned_refund_task(self.returned)]
        address = _approval_task(self.unapproved)
        tasks = [*refunds, deliveries, _dispute_task(self.disputes), address, _hold_task(self.holds)]
        return [task for task in tasks if task is not None]


def _refund_task(refunds: Sequence[Refund]) -> MerchantTask | None:
    if not refunds:
        return None
    first = refunds[0].checkout
    if len(refunds) == 1:
        amount = money.display(first.amount, first.currency)
        title = f"The refund of {amount} for {first.merchant_order_id} failed"
        reason = reasons.reason_text(refunds[0].failure_reason) or "The bank refused."
        text = f"{reason} The customer has not been paid back."
        if reasons.can_succeed_again(refunds[0].failure_reason):
            text += " Try again."
        return MerchantTask("alert", "stop", title, text, f"/portal/checkouts/{first.pk}", "See it")
    title = f"{_number_words(len(refunds))} refunds failed"
    text = "The bank refused. The customers have not been paid back. Each refund shows the reason."
    return MerchantTask("alert", "stop", title, text, "/portal/checkouts?state=refund_failed", "See them")


def _returned_refund_task(refunds: Sequence[Refund]) -> MerchantTask | None:
    if not refunds:
        return None
    first = refunds[0].checkout
    title = f"The bank returned money of the refund of {first.merchant_order_id}"
    text = "The customer does not have this money. Our support pays it. Don’t refund the order yourself."
    if len(refunds) == 1:
        return MerchantTask("alert", "held", title, text, f"/portal/checkouts/{first.pk}", "See it")
    title = f"The bank returned money of {_number_words(len(refunds))} refunds"
    text = "The customers do not have this money. Our support pays it. Don’t refund the orders yourself."
    return MerchantTask("alert", "held", title, text, "/portal/refunds?state=failed", "See them")


def _delivery_task(parked: int, endpoint: Endpoint | None) -> MerchantTask | None:
    if not parked and endpoint is None:
        return None
    since = when(endpoint.failing_since) if endpoint else ""
    answer = (endpoint.last_error or "no answer") if endpoint else ""
    if not parked:
        title = f"Your endpoint has been failing since {since}"
        text = f"Its last answer: {answer}. Deliveries that are not parked are retried automatically."
        return MerchantTask("alert", "stop", title, text, "/portal/deliveries", "See the answers")
    title = "1 delivery is parked" if parked == 1 else f"{_number_words(parked)} deliveries are parked"
    pronoun = "it" if parked == 1 else "them"
    text = f"We do not send {pronoun} again automatically. Find out why, then send {pronoun} again."
    if endpoint:
        text = f"Your endpoint has been failing since {since}: {answer}. Fix it, then send {pronoun} again."
    return MerchantTask("alert", "stop", title, text, "/portal/deliveries?outcome=parked", f"See {pronoun}")


def _approval_task(url: str) -> MerchantTask | None:
    if not url:
        return None
    title = "Your webhook address awaits approval"
    text = (
        f"{url} gets no events with personal data until an owner or an admin approves it. Such events wait for a week"
        " at most."
    )
    return MerchantTask("clock", "held", title, text, "/portal/webhooks#approval", "See it")


def _dispute_task(undecided: Sequence[Dispute]) -> MerchantTask | None:
    if not undecided:
        return None
    first, address = undecided[0], f"/portal/checkouts/{undecided[0].checkout_uuid}"
    amounts = _sums_words([(row.amount, row.payment.currency) for row in undecided])
    if len(undecided) == 1:
        title = f"A {disputes.payer_of(first.payment)} disputes {amounts} ({card_of(first.payment)})"
        text = "The bank has taken the money back and keeps it until the dispute is decided."
        return MerchantTask("alert", "stop", title, f"{text} {_evidence_sentence(first)}", address, "See it")
    title = f"{_number_words(len(undecided))} payments are disputed: {amounts}"
    text = "The banks have taken the money back and keep it until the disputes are decided."
    text = f"{text} The most urgent: {_evidence_sentence(first)}"
    return MerchantTask("alert", "stop", title, text, address, "See the most urgent")


def _evidence_sentence(row: Dispute) -> str:
    """Return a sentence with the deadline for a dispute's evidence, and the address to which the merchant sends it."""
    support, due = settings.SUPPORT_EMAIL, row.respond_by
    if due and row.is_overdue:
        return f"Evidence was due {deadline(due)}. Ask {support} if it can still be sent."
    return f"Send your evidence to {support}{f' by {deadline(due)}' if due else ''}."


def _hold_task(holds: Sequence[tuple[int, str]]) -> MerchantTask | None:
    if not holds:
        return None
    amounts = _sums_words(holds)
    is_single = len(holds) == 1
    title = (
        "1 hold lapsed before a capture"
        if is_single
        else f"{_number_words(len(holds))} holds lapsed before a capture"
    )
    text = f"{amounts} was released in the last 7 days. No money was taken from the customers."
    if is_single:
        text = f"{amounts} was released. No money was taken from the customer."
    return MerchantTask("clock", "held", title, text, "/portal/checkouts?state=lapsed", "See why")


def _sums_words(amounts: Sequence[tuple[int, str]]) -> str:
    """Return the sum of these amounts in each currency, in words. The amounts are in minor units."""
    by_currency: Counter[str] = Counter()
    for amount, currency in amounts:
        by_currency[currency] += amount
    return ", ".join(money.display(amount, currency) for currency, amount in sorted(by_currency.items()))


def _number_words(count: int) -> str:
    return f"more than {MAXIMUM:,}" if count > MAXIMUM else f"{count:,}"
