"""Mails to owners about stops, and about problems with endpoints, deliveries, refunds, holds and disputes.

Rule portal.mails.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from checkout.models import Change
from checkout.remedies import reasons
from checkout.states import Status, VoidReason
from config.lib import clock
from payments import money
from payments.models import Dispute, Merchant, Movement, Switch
from portal.dashboard import merchant_tasks
from portal.mail import outbox
from portal.models import OutboundEmail
from webhooks.models import Delivery, Endpoint, EventType

FAILING_FOR = timedelta(hours=1)  # how long an endpoint must fail before the owners get a mail
# The maximum number of merchants that get a mail about a stop in one run. The next run, a minute later,
# continues.
STOPS_PER_RUN = 500
# How far each run looks back; runs are a minute apart, but workers can be down.
LOOK_BACK = timedelta(hours=1)


def queue_trouble_mails(now: datetime) -> None:
    """Queue a mail about each new problem."""
    _queue_failing_endpoints(now)
    _queue_parked_deliveries(now)
    _queue_failed_refunds(now)
    _queue_returned_refunds(now)
    _queue_lost_holds(now)
    _queue_dispute_mails(now)
    _queue_stops(now)


def _queue_failing_endpoints(now: datetime) -> None:
    rows = Endpoint.objects.filter(failing_since__lte=now - FAILING_FOR, subscription__ended_at=None)
    for endpoint in rows.select_related("subscription__merchant"):
        subscription, since = endpoint.subscription, endpoint.failing_since
        if since is not None:
            key = f"{subscription.pk}:{since:%Y%m%dT%H%M%S}"
            facts = {"url": subscription.url, "error": endpoint.last_error or "no answer"}
            outbox.queue_once(
                subscription.merchant, "endpoint_failing", key=key, since=clock.iso(since), **facts
            )


def _queue_parked_deliveries(now: datetime) -> None:
    parked = Delivery.objects.filter(
        status=Delivery.Status.PARKED, closed_at=None, ended_at__gte=now - LOOK_BACK
    ).exclude(event_type=EventType.TEST)
    _queue_daily_mails(now, "deliveries_parked", parked.values("merchant"))


def _queue_failed_refunds(now: datetime) -> None:
    changes = Change.objects.filter(
        pk__gte=clock.first_id(now - LOOK_BACK), origin=Status.REFUNDING, to=Status.CAPTURED
    )
    failed = merchant_tasks.failed_refunds(checkout__in=changes.values("checkout"))
    for refund in failed.select_related("merchant", "checkout"):
        checkout = refund.checkout
        outbox.queue_once(
            refund.merchant,
            "refund_failed",
            key=str(refund.pk),
            order=checkout.merchant_order_id,
            amount=money.display(refund.amount, checkout.currency),
            checkout=str(checkout.pk),
            ref=refund.merchant_refund_ref,
            why=reasons.reason_text(refund.failure_reason),
            is_hopeless=not reasons.can_succeed_again(refund.failure_reason),
        )


def _queue_returned_refunds(now: datetime) -> None:
    returns = Movement.objects.filter(
        pk__gte=clock.first_id(now - LOOK_BACK), kind=Movement.Kind.REFUND_RETURNED
    )
    rows = merchant_tasks.returned_refunds(pk__in=returns.values("operation__refund_uuid"))
    for refund in rows.select_related("merchant", "checkout"):
        outbox.queue_once(
            refund.merchant,
            "refund_returned",
            key=str(refund.pk),
            order=refund.checkout.merchant_order_id,
            checkout=str(refund.checkout_id),
        )


def _queue_lost_holds(now: datetime) -> None:
    lost = Change.objects.filter(
        pk__gte=clock.first_id(now - LOOK_BACK),
        origin=Status.AUTHORIZED,
        to=Status.VOIDED,
        checkout__void_reason=VoidReason.AUTH_EXPIRED,
    )
    _queue_daily_mails(now, "holds_lost", lost.values("checkout__merchant"))


def _queue_daily_mails(now: datetime, kind: str, recent_merchants: QuerySet[Any]) -> None:
    """Queue a mail of a daily kind to each merchant that has new rows since its last mail of this kind.

    A merchant gets at most one mail of this kind per day. `recent_merchants` are the merchants that have rows
    from the last hour. The function also checks merchants that got such a mail in the last seven days,
    because rows that appeared later on the same day are still unreported.
    """
    mails = OutboundEmail.objects.filter(kind=kind, pk__gte=clock.first_id(now - merchant_tasks.LOOK_BACK))
    today = f"{now:%Y-%m-%d}"
    # A mail that is not sent yet will count all rows, so no other mail is queued.
    current_mails = mails.filter(Q(key=today) | Q(next_try_at__isnull=False))
    merchants = Merchant.objects.filter(Q(pk__in=recent_merchants) | Q(pk__in=mails.values("merchant")))
    for merchant in merchants.exclude(pk__in=current_mails.values("merchant")):
        if outbox.rows_without_mail(merchant, kind).exists():
            outbox.queue_once(merchant, kind, key=today)


def _queue_dispute_mails(now: datetime) -> None:
    """Queue a mail about each dispute that is opened, opened again after an appeal, or decided. Rule dispute.told."""
    rows = Dispute.objects.select_related("payment__merchant")
    for dispute in rows.filter(created_at__gte=now - LOOK_BACK, closed_at=None):
        outbox.queue_once(dispute.payment.merchant, "dispute_opened", key=str(dispute.pk))
    withdrawals = Movement.objects.filter(kind=Movement.Kind.DISPUTE_WITHDRAWN, dispute__closed_at=None)
    withdrawals = withdrawals.filter(
        recorded_at__gte=now - LOOK_BACK, recorded_at__gt=F("dispute__created_at")
    )
    for movement in withdrawals.select_related("payment__merchant"):
        key = f"{movement.dispute_id}:{movement.pk}"
        outbox.queue_once(movement.payment.merchant, "dispute_opened", key=key)
    for dispute in rows.filter(closed_at__gte=now - LOOK_BACK):
        key = f"{dispute.pk}:{dispute.closed_at:%Y%m%dT%H%M%S%f}"
        outbox.queue_once(dispute.payment.merchant, "dispute_decided", key=key)


def _queue_stops(now: datetime) -> None:
    """Queue a mail about each suspension by an operator, and about its end if the suspension was mailed."""
    changed = Switch.objects.filter(changed_at__gte=now - LOOK_BACK).select_related("merchant")
    # Stops come first. Otherwise, if one stop ended while another continues, the end would look like news.
    for switch in changed.order_by("-is_stopped", "changed_at"):
        kind, since = "suspended" if switch.is_stopped else "resumed", clock.iso(switch.changed_at)
        for merchant in _merchants_to_inform(switch):
            outbox.queue_once(merchant, kind, key=f"{switch.pk}:{since}", since=since)


def _merchants_to_inform(switch: Switch) -> Iterable[Merchant]:
    """Return the merchants that get a mail about a stop or its end, at most STOPS_PER_RUN of them.

    A merchant gets no mail about a stop of all merchants if its latest mail already says that its payments
    are stopped. A merchant gets a mail about the end of a stop only after such a mail. A merchant whose own
    stop continues gets no mail in either case.
    """
    if switch.merchant and switch.is_stopped:
        return [switch.merchant]
    mails = OutboundEmail.objects.filter(merchant=OuterRef("pk"), kind__in=("suspended", "resumed"))
    latest = mails.order_by("-created_at")
    rows = Merchant.objects.annotate(
        latest_kind=Subquery(latest.values("kind")[:1]), latest_sent_at=Subquery(latest.values("sent_at")[:1])
    )
    rows = rows.filter(pk=switch.merchant_id) if switch.merchant_id else rows
    own_stop = Switch.objects.filter(merchant=OuterRef("pk"), is_stopped=True)
    rows = rows.exclude(Exists(own_stop)).order_by("pk")
    if switch.is_stopped:
        return rows.filter(Q(latest_kind=None) | Q(latest_kind="resumed"))[:STOPS_PER_RUN]
    return rows.filter(latest_kind="suspended", latest_sent_at__isnull=False)[:STOPS_PER_RUN]
