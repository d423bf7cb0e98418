"""The pages of the delivery log: the list, one delivery, sending again."""

from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from checkout.models import Checkout
from config.lib import cursor
from payments.models import Merchant
from portal import access, audit, badges, pages
from portal.access import requires
from portal.dashboard import needs
from portal.deliveries import log
from portal.models import Membership
from portal.orders import search
from webhooks import resending, subscriptions
from webhooks.models import Attempt, Delivery, EventType, Subscription

PER_PAGE = 50
OUTCOMES = (
    ("", "Any"),
    ("delivered", "Delivered"),
    ("failed", "Failed"),
    ("parked", "Parked"),
    ("waiting", "Waiting"),
)
TYPES = (("", "Any"), *((kind.value, kind.value) for kind in EventType))


class Filters(forms.Form):
    """The filters of the list, all of them optional."""

    q = forms.CharField(required=False, max_length=255, label="Event id, order id or checkout")
    outcome = forms.ChoiceField(required=False, choices=OUTCOMES, label="Outcome")
    event_type = forms.ChoiceField(required=False, choices=TYPES, label="Event")
    since = forms.DateTimeField(required=False, label="From", validators=[search.in_our_time])
    until = forms.DateTimeField(required=False, label="To", validators=[search.in_our_time])


@requires("view")
def listed(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show a line per attempt, newest first; of what is parked or waits, a line per delivery."""
    merchant = membership.merchant
    with timezone.override(ZoneInfo(merchant.time_zone)):
        form = Filters(request.GET or None)
        asked = form.cleaned_data if form.is_bound and form.is_valid() else {}
    by_delivery = asked.get("outcome") in ("parked", "waiting")
    rows: QuerySet[Any] = _deliveries(merchant, asked) if by_delivery else _attempts(merchant, asked)
    key = {"parked": "ended_at", "waiting": "next_attempt_at"}.get(asked.get("outcome", ""), "started_at")
    try:
        found, older = cursor.page(
            rows,
            scope=f"portal-{key}:{merchant.pk}",
            limit=PER_PAGE,
            cursor=request.GET.get("cursor"),
            key=key,
        )
    except cursor.InvalidCursor:
        return redirect("portal_deliveries")
    parked = needs.parked(merchant)
    lines = _lines(merchant, found)
    context = {
        "form": form,
        "is_filtered": any(asked.values()),
        "rows": lines,
        "can_tick": any(line["can_tick"] for line in lines),
        "older": older,
        "is_first": "cursor" not in request.GET,
        "has_endpoint": partial(_has_endpoint, merchant),  # called only if the log is empty
        "parked": parked[: needs.MAXIMUM].count(),
        "parked_since": parked.order_by("ended_at").values_list("ended_at", flat=True).first(),
    }
    template = "portal/_deliveries.html" if pages.is_asked_for(request, "found") else "portal/deliveries.html"
    return pages.show(request, membership, template, context, here="portal_deliveries")


def _has_endpoint(merchant: Merchant) -> bool:
    return Subscription.objects.filter(merchant=merchant, ended_at=None).exists()


def _attempts(merchant: Merchant, asked: dict[str, Any]) -> QuerySet[Attempt]:
    rows = Attempt.objects.filter(merchant=merchant).select_related("delivery__event")
    if asked.get("q"):
        rows = rows.filter(delivery__in=_matches(merchant, asked["q"].strip()))
    if asked.get("outcome"):
        rows = rows.filter(is_delivered=asked["outcome"] == "delivered")
    if asked.get("event_type"):
        rows = rows.filter(event_type=asked["event_type"])
    if asked.get("since"):
        rows = rows.filter(started_at__gte=asked["since"])
    if asked.get("until"):
        rows = rows.filter(started_at__lte=asked["until"])
    return rows


def _deliveries(merchant: Merchant, asked: dict[str, Any]) -> QuerySet[Delivery]:
    rows = Delivery.objects.filter(merchant=merchant).select_related("event")
    key = "ended_at" if asked["outcome"] == "parked" else "next_attempt_at"
    status = Delivery.Status.PARKED if asked["outcome"] == "parked" else Delivery.Status.PENDING
    rows = rows.filter(status=status)
    if asked.get("q"):
        rows = rows.filter(pk__in=_matches(merchant, asked["q"].strip()))
    if asked.get("event_type"):
        rows = rows.filter(event__type=asked["event_type"])
    if asked.get("since"):
        rows = rows.filter(**{f"{key}__gte": asked["since"]})
    if asked.get("until"):
        rows = rows.filter(**{f"{key}__lte": asked["until"]})
    return rows


def _matches(merchant: Merchant, text: str) -> list[UUID]:
    """Return the deliveries of the event, the checkout, or the checkouts with the order id that the text names."""
    uuid = search.parse_uuid(text)
    orders = Checkout.objects.filter(merchant=merchant, merchant_order_id=text).order_by("-created_at")
    checkouts: list[UUID] = list(orders.values_list("pk", flat=True)[: search.MAX_MATCHES])
    rows = Delivery.objects.filter(merchant=merchant)
    if uuid:
        checkouts.append(uuid)
    found = set(
        rows.filter(event__checkout_uuid__in=checkouts).values_list("pk", flat=True)[: search.MAX_MATCHES]
    )
    if uuid:
        found.update(rows.filter(event=uuid).values_list("pk", flat=True))
    return list(found)


def _lines(merchant: Merchant, found: Any) -> list[dict[str, Any]]:
    deliveries = [row.delivery if isinstance(row, Attempt) else row for row in found]
    wanted = {delivery.event.checkout_uuid for delivery in deliveries if delivery.event.checkout_uuid}
    orders = dict(
        Checkout.objects.filter(merchant=merchant, pk__in=wanted).values_list("pk", "merchant_order_id")
    )
    return [_line(row, orders) for row in found]


def _line(row: Attempt | Delivery, orders: dict[UUID, str]) -> dict[str, Any]:
    attempt = row if isinstance(row, Attempt) else None
    delivery = row.delivery if isinstance(row, Attempt) else row
    number = attempt.number if attempt else delivery.attempt_count
    answer = ""
    if attempt and attempt.is_delivered is not None:
        answer = str(attempt.http_status) if attempt.http_status else "no answer"
    badge = (
        badges.of_attempt(delivery, number, attempt.is_delivered) if attempt else badges.of_delivery(delivery)
    )
    return {
        "id": f"{delivery.pk}-{number}",
        "address": f"{reverse('portal_delivery', args=[delivery.pk])}?attempt={number}",
        "delivery": delivery,
        "can_tick": delivery.status == Delivery.Status.PARKED and number == delivery.attempt_count,
        "number": number,
        "order": orders.get(delivery.event.checkout_uuid, "") if delivery.event.checkout_uuid else "",
        "badge": badge,
        "answer": answer,
        "took": attempt.duration_ms if attempt else None,
        "at": attempt.started_at if attempt else delivery.ended_at or delivery.next_attempt_at,
    }


@requires("view")
def detail(request: HttpRequest, membership: Membership, delivery_uuid: UUID) -> HttpResponse:
    """Show one attempt with its request and its answer, and every attempt of the delivery."""
    return _detail(request, membership, delivery_uuid)


def _detail(request: HttpRequest, membership: Membership, delivery_uuid: UUID, **more: Any) -> HttpResponse:
    delivery = _of(membership.merchant, delivery_uuid)
    number = request.GET.get("attempt", "")
    shown = log.shown(
        membership.merchant,
        delivery,
        number=int(number) if number.isdecimal() and len(number) < 9 else None,
        reveal=more.pop("reveal", False),
    )
    context = {"shown": shown, "confirm": request.GET.get("confirm", "")} | more
    template = "portal/_delivery.html" if pages.is_asked_for(request, "opened") else "portal/delivery.html"
    return pages.show(request, membership, template, context, here="portal_deliveries")


def _of(merchant: Merchant, delivery_uuid: UUID) -> Delivery:
    rows = Delivery.objects.filter(merchant=merchant, pk=delivery_uuid).select_related(
        "event", "subscription"
    )
    delivery = rows.first()
    if delivery is None:
        raise Http404
    return delivery


@requires("reveal", form_of="portal_delivery")
def reveal(request: HttpRequest, membership: Membership, delivery_uuid: UUID) -> HttpResponse:
    """Show the personal data of a marketing.opted_in, and record who looked."""
    delivery = _of(membership.merchant, delivery_uuid)
    audit.record(request, membership, "personal_data_revealed", event=str(delivery.event_id))
    return _detail(request, membership, delivery_uuid, reveal=True)


@requires("resend", form_of="portal_deliveries")
def resend(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Send again one delivery, the ticked ones, or all that were parked since a moment."""
    chosen = [uuid for text in request.POST.getlist("delivery") if (uuid := search.parse_uuid(text))]
    confirmed = request.POST.get("confirm") == "yes"
    try:
        with transaction.atomic():
            if request.POST.get("which") == "one" and len(chosen) == 1:
                return _resend_one(request, membership, chosen[0], confirmed)
            if request.POST.get("which") == "parked":
                since = _moment(request.POST.get("since", ""))
                if since is None:
                    pages.refuse(request, "Choose since when.")
                    return redirect("portal_deliveries")
                resent = resending.resend_parked(
                    membership.merchant, since, cause=access.cause(membership), although_over=confirmed
                )
            elif chosen:
                resent = resending.resend_selected(
                    membership.merchant, chosen, cause=access.cause(membership), although_over=confirmed
                )
            else:
                pages.refuse(request, "Tick the deliveries to send again first.")
                return redirect("portal_deliveries")
            audit.record(request, membership, "deliveries_resent", sent=resent.sent, left_out=resent.left_out)
    except subscriptions.SubscriptionNotFound:
        pages.refuse(request, "There is no endpoint to send to. Save one first.")
        return redirect("portal_webhooks")
    _tell(request, resent)
    return redirect("portal_deliveries")


def _resend_one(
    request: HttpRequest, membership: Membership, delivery_uuid: UUID, confirmed: bool
) -> HttpResponse:
    address = reverse("portal_delivery", args=[delivery_uuid])
    try:
        delivery = resending.resend(
            membership.merchant,
            delivery_uuid,
            cause=access.cause(membership),
            although_over=confirmed,
            although_delivered=confirmed,
        )
    except resending.DeliveryNotFound:
        raise Http404 from None
    except resending.HoldIsOver:
        return redirect(f"{address}?confirm=over")
    except resending.AlreadyDelivered:
        return redirect(f"{address}?confirm=delivered")
    except resending.CannotResend as refused:
        pages.refuse(request, str(refused))
        return redirect(address)
    audit.record(request, membership, "deliveries_resent", event=str(delivery.event_id), sent=1)
    messages.success(request, "On its way. Its answer appears here.")
    return redirect(f"{address}?attempt={delivery.attempt_count + 1}")


def _tell(request: HttpRequest, resent: resending.Resent) -> None:
    sent = (
        "1 delivery is on its way." if resent.sent == 1 else f"{resent.sent:,} deliveries are on their way."
    )
    if not resent.sent:
        messages.warning(
            request, "None of them can be sent again: the holds are over, or they were delivered."
        )
        return
    left_out = (
        f" {resent.left_out:,} were left out: their hold is over, or they were delivered."
        if resent.left_out
        else ""
    )
    messages.success(request, sent + left_out)


def _moment(text: str) -> datetime | None:
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo else None
