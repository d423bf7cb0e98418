"""The tops of the pages of texts, shares, bookings, merchants, stops, people, keys and audit entries."""

from typing import Any

from django.http import HttpRequest

from checkout.models import PaymentRequest
from checkout.states import ShareStatus
from config.lib.admin import columns
from hosted_page.models import SmsMessage
from hosted_page.sms.message_states import MessageState, state_of
from payments import money
from payments.models import Booking, Switch
from portal.backoffice import badges
from portal.backoffice.order import format_utc, format_when
from portal.backoffice.record_heads.head import NO_STEP, Head, Link, link_to, link_to_order, order_words
from portal.badges import Badge
from portal.models import ApiClient, AuditEntry, Membership, Role, User

TEXT_BADGES: dict[MessageState, Badge] = {
    MessageState.WAITING: Badge("still", "clock", "Waiting"),
    MessageState.NO_CARRIER: Badge("void", "skip", "Not texted"),
    MessageState.HANDED_OVER: Badge("move", "send", "Handed to the carrier"),
    MessageState.DELIVERED: Badge("done", "check", "Delivered"),
    MessageState.UNDELIVERED: Badge("stop", "alert", "Undelivered"),
    MessageState.REFUSED: Badge("stop", "cross", "Refused"),
    MessageState.IN_DOUBT: Badge("held", "alert", "In doubt"),
    MessageState.NOT_SENT: Badge("void", "slash", "Not sent"),
}
TEXT_STATES: dict[MessageState, str] = {
    MessageState.WAITING: "It has not been sent yet.",
    MessageState.NO_CARRIER: "The sandbox has no carrier, so no text was sent. Sign-in codes are shown on the page.",
    MessageState.HANDED_OVER: "The carrier accepted it {at}, and has not reported the delivery.",
    MessageState.DELIVERED: "The carrier accepted it {at}, and reported that it was delivered.",
    MessageState.UNDELIVERED: "The carrier accepted it {at}, and could not deliver it. Reason: {why}.",
    MessageState.REFUSED: "The carrier did not accept it. Reason: {why}.",
    MessageState.IN_DOUBT: "The carrier gave no clear answer, so it might have been sent. It is not sent again.",
    MessageState.NOT_SENT: "It was not sent, because it came too late or was no longer needed.",
}
UNREACHED = "Ask the payer whether the number is right. The payer can request another text on the page."
SHARE_STEPS: dict[str, str] = {
    ShareStatus.OPEN: "No action is needed: the mate can pay until {until}.",
    ShareStatus.PAID: "No action is needed: the service pays it back to the lead’s card. The order’s page shows it.",
}
STOP_STEP = "If the cause is gone, choose Resume. Until then, reading, cancelling and refunding still work."
ALL_STOPPED = "All merchants are stopped, so this one cannot create orders, be paid or capture either."
ALL_STOPPED_STEP = "If the cause is gone, end the stop of all merchants on its page."
BOOKED_STEP = (
    "If the payer does not have the money, choose Take the booking back. Otherwise no action is needed."
)


def head_of_text(row: SmsMessage, request: HttpRequest) -> Head:
    """Return the head of a text: what it is for, what the carrier has reported, and the next step."""
    state = state_of(row)
    summary = f"{row}, for {order_words(row.checkout_uuid)} of {row.merchant}."
    told = TEXT_STATES[state].format(at=format_when(row.sent_at), why=row.refusal or "none given")
    is_lost = state in (MessageState.UNDELIVERED, MessageState.REFUSED, MessageState.IN_DOUBT)
    step = UNREACHED if is_lost else NO_STEP
    return Head(f"{summary} {told}", step, TEXT_BADGES[state], link_to_order(request, row.checkout_uuid))


def head_of_share(row: PaymentRequest, request: HttpRequest) -> Head:
    """Return the head of a share: the order to which it belongs, its state, and the next step."""
    amount = money.display(row.amount, row.checkout.currency)
    summary = f"A mate is asked for {amount} of order {row.checkout.merchant_order_id}."
    if row.paid_at:
        summary = (
            f"A mate paid {amount} of order {row.checkout.merchant_order_id} {format_when(row.paid_at)}."
        )
    step = SHARE_STEPS.get(row.status, NO_STEP).format(until=format_utc(row.expires_at) or "the order ends")
    payment = link_to(request, "Open the payment", "payments.payment", row.payment_id)
    return Head(summary, step, badges.SHARE[row.status], [*payment, *link_to_order(request, row.checkout_id)])


def head_of_booking(row: Booking, request: HttpRequest) -> Head:
    """Return the head of a booking: what it is about, and whether it can be taken back."""
    amount = money.display(abs(row.amount), row.payment.currency)
    reversal = Booking.objects.filter(reverses=row).first()
    is_over = row.reverses_id is not None or reversal is not None
    summary = f"{row.get_kind_display()}: {amount} of {order_words(row.checkout_uuid)}. No money moved at the provider."
    links = link_to(request, "Open the operation", "payments.operation", row.operation_id)
    links += link_to_order(request, row.checkout_uuid)
    is_reversible = row.kind == Booking.Kind.SETTLED_OUTSIDE and not is_over
    badge = Badge("void", "back", "Taken back") if is_over else Badge("still", "edit", "Booked")
    return Head(summary, BOOKED_STEP if is_reversible else NO_STEP, badge, links)


def head_of_merchant(row: Any, request: HttpRequest) -> Head:
    """Return the head of a merchant: whether it can take payments, and how to change this.

    The admin's query must have read the stops.
    """
    badge = badges.of_merchant(row)
    if badge == badges.OPEN:
        return Head(f"{row} takes payments.", badge=badge)
    if badge == badges.STOPPED_WITH_ALL:
        links = [Link("Open the stops", columns.list_address("payments.switch"))]
        return Head(ALL_STOPPED, ALL_STOPPED_STEP, badge, links, names_button=True)
    summary = f"{row} cannot create orders, be paid or capture. Holds lapse and are released."
    return Head(summary, STOP_STEP, badge, names_button=True, action="resume")


def head_of_switch(row: Switch, request: HttpRequest) -> Head:
    """Return the head of a stop: to whom it applies, and why."""
    whom = str(row.merchant) if row.merchant else "all merchants"
    if not row.is_stopped:
        return Head(f"This stop of {whom} has ended.", badge=badges.STOP_ENDED)
    links = link_to(request, "Open the merchant", "payments.merchant", row.merchant_id)
    summary = f"An operator stopped {whom} {format_when(row.changed_at)}: “{row.reason}”."
    return Head(summary, STOP_STEP, badges.STOPPED, links, names_button=True, action="lift")


def head_of_user(row: User, request: HttpRequest) -> Head:
    """Return the head of a person: where the person logs in, and whether the person can do so."""
    where = "these pages, as an operator" if row.is_staff else "the merchant’s portal"
    if row.is_active:
        return Head(f"This person logs in to {where}.", badge=badges.ACTIVE)
    summary = f"This person can no longer log in to {where}."
    if row.disabled_for_disuse_at:
        at = format_when(row.disabled_for_disuse_at)
        return Head(
            f"{summary} The account was not used for 90 days, and was disabled {at}.", "", badges.DISABLED
        )
    return Head(summary, "To let the person log in again, tick Active below and save.", badges.DISABLED)


def head_of_membership(row: Membership, request: HttpRequest) -> Head:
    """Return the head of a membership: whose role it is, and at which merchant."""
    role = Role(row.role).in_words
    return Head(f"{row.user} is {role} in the portal of {row.merchant}.", next_step="")


def head_of_key(row: ApiClient, request: HttpRequest) -> Head:
    """Return the head of a key: whose server uses it, and whether it still works."""
    summary = f"{row.merchant}’s server uses this key for the API."
    if row.revoked_at:
        return Head(f"{summary} It was revoked {format_when(row.revoked_at)}.", badge=badges.REVOKED)
    return Head(
        summary, "No action is needed. The merchant rotates and revokes keys in the portal.", badges.VALID
    )


def head_of_audit_entry(row: AuditEntry, request: HttpRequest) -> Head:
    """Return the head of an audit entry: who acted, for which merchant, when and from where.

    The heading names the action.
    """
    who = f"The key “{row.client}”" if row.client else str(row.user or "A deleted account")
    role = ", as an operator," if row.is_operators else ""
    whose = f" for {row.merchant}" if row.merchant else ""
    where = f", from {row.address}" if row.address else ""
    summary = f"{who}{role} did this{whose} {format_when(row.created_at)}{where}. Entries never change."
    return Head(summary, next_step="")
