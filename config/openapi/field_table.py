"""The table of the API's fields: the sentence, the type and the limits of each, in one place.

If a field differs in one object, its row `Object.field` says how. Fields of requests have no type here,
because their serializers have it. The same applies to fields that are returned as they were sent.
"""

from typing import Any, NamedTuple

from checkout.api.serializers import MAXIMUM
from checkout.models import Refund
from checkout.split_amounts import MAX_PEOPLE
from checkout.states import ShareStatus, Status, VoidReason
from config import errors
from config.openapi.fields import currency, refer, text, values, written_time
from hosted_page.models import OptIn
from hosted_page.opt_in import link
from payments.models import Dispute, Operation
from webhooks.models import Delivery, EventType
from webhooks.subscriptions import SUBSCRIBABLE

Schema = dict[str, Any]


_LISTED = (
    "CheckoutAuthorized",
    "CheckoutVoided",
    "MarketingOptedIn",
    "Withheld",
    "Other",
)  # the events that the feed lists


class Field(NamedTuple):
    """A sentence, and either a type with limits or the request whose field of the same name has them."""

    words: str = ""
    kind: Schema | None = None
    sent_in: str = ""


def words_on(thing: str, name: str) -> str:
    """Return the sentence about a field of an object, or about a parameter of "query"; "" if it has none."""
    return _row(f"{thing}.{name}").words or _row(name).words


def described(thing: str, name: str, requests: Schema) -> Schema:
    """Return the schema of a response's field without its sentence.

    `requests` holds the schemas of requests.
    """
    own, general = _row(f"{thing}.{name}"), _row(name)
    for row in (own, general):
        if row.kind is not None:
            return dict(row.kind)
    sent = requests[general.sent_in]["properties"][name]
    return {key: value for key, value in sent.items() if key != "x-default"}


def _row(name: str) -> Field:
    return FIELDS.get(name, Field())


def _whole(minimum: int, maximum: int | None = None) -> Schema:
    limits = {"minimum": minimum} if maximum is None else {"minimum": minimum, "maximum": maximum}
    return {"type": "integer", **limits}


def _one_of(*known: str) -> Schema:
    return values(*map(str, known))


def _always(value: str) -> Schema:
    return {"type": "string", "enum": [str(value)]}


def _list(item: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": item, **limits}


_TIME, _UUID = written_time(), {"type": "string", "format": "uuid"}
_STRING, _URL = {"type": "string"}, {"type": "string", "format": "uri"}
_SENT = _STRING | {"maxLength": 2048}
_WANTED_SCOPE = Field("Scopes separated by spaces; without it, all that the key has.")
_TICKED, _SUM = {"type": "boolean"}, {"type": "integer", "format": "int64"}
_FEE = Field("Reserved. Always 0 today.", _whole(0))
_VOID_REASON = Field(
    "`merchant_cancel`: you did. `auth_expired`: nobody captured in time.", _one_of(*VoidReason)
)
_WANTED = Field("Which events you get; `*` is all of them.", _list(_one_of(*SUBSCRIBABLE)))
_SHARE_STATUS = Field("How far the mate is with this share.", _one_of(*ShareStatus))

FIELDS = {
    # Checkouts
    "checkout_uuid": Field("The checkout: for capture, cancel, refund, reads and events.", _UUID),
    "merchant_order_id": Field("Your own reference of the order. It may repeat.", sent_in="CheckoutRequest"),
    "status": Field("Where the order is; see States.", _one_of(*Status)),
    "CreatedCheckout.status": Field(kind=_always(Status.CREATED)),
    "amount": Field("Minor units, such as pence.", _whole(1, MAXIMUM)),
    "total_amount": Field(
        "Minor units: what the items add up to. What a card can be charged may be a narrower range in some currencies; "
        "the error names it."
    ),
    "currency": Field("ISO 4217 code in upper case, such as `GBP`.", currency()),
    "checkout_url": Field("The hosted page. Send the customer there; use it exactly as it is.", _URL),
    "expires_at": Field("`merchant_expires_at` as you sent it; null unless you did.", _TIME),
    "created_at": Field("When it was made.", _TIME),
    "payable_until": Field("When the unpaid checkout ends by itself, whoever has set it.", _TIME),
    "metadata": Field(
        "Your own words to it, given back in every read; `{}` if you sent none. Never shown to payers; not for "
        "personal data.",
        refer("Metadata"),
    ),
    "CheckoutRequest.metadata": Field(
        "Your own words to it: at most 50 keys of 1 to 40 characters, each with a string of at most 500, 8 KiB in "
        "all. Given back in every read, never shown to payers. Not for personal data."
    ),
    "CheckoutRequest.customer": Field(
        "What you know of the customer, to prefill the page: all of it optional. Never given back, and deleted a day "
        "after the checkout's end."
    ),
    "CustomerRequest.phone": Field(
        "Their mobile number; without `+` and a country's code it is one of your own country. The page shows its last "
        "four digits and texts a code to it once they ask."
    ),
    "CustomerRequest.name": Field("Their name, filled in once they have entered the code."),
    "locale": Field(
        "The language of the page and of its texts, such as `fr` or `fr-CA`, unless the customer chooses another. One "
        "that the page does not speak counts for nothing."
    ),
    "items": Field("The lines of the order, in your order.", _list(refer("Item"), minItems=1, maxItems=100)),
    "available_actions": Field(
        "What you may do with it now.", _list(_one_of("capture", "cancel", "refund"), maxItems=2)
    ),
    "expired_at": Field("When the unpaid checkout ended.", _TIME),
    "authorized_at": Field("When the card was held.", _TIME),
    "capture_before": Field("When the hold ends by itself, two minutes after `authorized_at`.", _TIME),
    "voided_at": Field("When the hold was released, or the unpaid checkout cancelled.", _TIME),
    "void_reason": _VOID_REASON,
    "captured_at": Field("When the money moved.", _TIME),
    "refunded_amount": Field(
        "Minor units given back: 0 until the refund has settled, then the whole amount.", _whole(0, MAXIMUM)
    ),
    "last_refund_at": Field("When the refund settled; null until then.", _TIME),
    "merchant_processor_fee": _FEE,
    "merchant_service_fee": _FEE,
    "refunds": Field("Newest first, failed ones too.", _list(refer("Refund"), minItems=1)),
    "pending_operation": Field(
        "The card operation that is open at this moment, or about to be sent: while the checkout is created or "
        "authorized, nothing can be done with it until this is gone.",
        _one_of(*Operation.Kind),
    ),
    "shares": Field(
        "How far the customer's mates have paid their parts. `amount` and refunds do not depend on it.",
        refer("Shares"),
    ),
    "disputes": Field(
        "Once a payer has asked their bank for the money back: oldest first. While one is open or lost, the "
        "checkout is not refunded.",
        _list(refer("Dispute"), minItems=1),
    ),
    "dispute_uuid": Field("The dispute.", _UUID),
    "Dispute.amount": Field("Minor units that the payer's bank has taken back."),
    "Dispute.reason": Field("The provider's word for why.", text(1, 40)),
    "Dispute.status": Field(
        "`open` until it is decided: `won`, and the money is yours again, or `lost`.",
        _one_of(*Dispute.Status),
    ),
    "opened_at": Field("When the payer's bank opened it.", _TIME),
    "respond_by": Field(
        "Until when evidence may be sent, by the operators; null when there is no such time.", _TIME
    ),
    "count": Field("How many mates were asked.", _whole(1, MAX_PEOPLE - 1)),
    "paid_count": Field(
        "How many of them have paid and have not got it back: a refund counts them out again.",
        _whole(0, MAX_PEOPLE - 1),
    ),
    "paid_amount": Field("Minor units that they have paid.", _whole(0, MAXIMUM)),
    "return_url": Field(
        "Where the customer lands afterwards: absolute https, without user name, on a host of your "
        "list in the portal if you keep one. Comes back unchanged: put your order's number in it. A "
        "confirmation page only, never a reason to fulfil."
    ),
    "cancel_url": Field(
        "Where the customer lands after giving up: absolute https, without user name, on a host of your "
        "list in the portal if you keep one. Comes back unchanged, too."
    ),
    "merchant_expires_at": Field(
        "When the unpaid checkout ends: 1 minute to 24 hours ahead, with an offset. "
        "When you leave it out: as you have set in the portal, else 60 minutes after creation."
    ),
    "CheckoutRequest.items": Field("The lines of the order. Together they make `total_amount`."),
    # Items
    "item_ref": Field("Your own reference of the line.", sent_in="ItemRequest"),
    "name": Field("What the customer reads.", sent_in="ItemRequest"),
    "quantity": Field("How many.", sent_in="ItemRequest"),
    "unit_price": Field(
        "Minor units for one; negative on a `discount`, and only there.", sent_in="ItemRequest"
    ),
    "category": Field(
        "A slug. Known: ticket, merchandise, food_and_drink, accommodation, travel, experience, "
        "membership, service, donation, shipping, fee, tax, discount, other. An unknown one is kept, and shown "
        "as other.",
        sent_in="ItemRequest",
    ),
    "custom_data": Field(
        "Your own object: at most 8 KiB (its numbers written out), 4 levels, 50 keys. On a ticket `event_id` (string), "
        "`event_start` (timestamp) and `time_zone` (IANA name) are checked when present.",
        sent_in="ItemRequest",
    ),
    "ItemRequest.currency": Field("The checkout's currency."),
    # Capture, cancel, refund
    "CaptureRequest.amount": Field("The full amount; leave it out to take the full amount."),
    "CancelRequest.reason": Field("A note of yours, for your own records: no customer sees it."),
    "merchant_refund_ref": Field(
        "Your own reference, unique among all your refunds. Repeating it is safe.", sent_in="RefundRequest"
    ),
    "refund_uuid": Field("The refund.", _UUID),
    "reason": Field("Your reason, in your words.", text(1, 500)),
    "RefundRequest.amount": Field("The full amount; leave it out."),
    "Refund.status": Field(
        "`pending` until the provider has confirmed or refused it.", _one_of(*Refund.Status)
    ),
    "settled_at": Field("When the money was back; null until then.", _TIME),
    "failure_reason": Field("Why the provider refused it; null unless it did.", text(1, 40)),
    # Lists
    "checkouts": Field("Newest first.", _list(refer("Checkout"), maxItems=200)),
    "deliveries": Field("Newest first.", _list(refer("DeliveryAttempt"), maxItems=200)),
    "next_cursor": Field("Give it as `cursor` for the next page; null on the last one.", text(1, 500)),
    "events": Field("In the order in which they were written.", _list(refer("ListedEvent"), maxItems=200)),
    "EventFeed.next_cursor": Field("Keep it: given as `cursor`, it leads to what comes after this page."),
    "event": Field(
        "The envelope, byte for byte as it is sent; without `data` where you may not see it, or it was deleted.",
        {"type": "object", "anyOf": [refer(f"{name}Event") for name in _LISTED]},
    ),
    "delivery_status": Field(
        "What became of its delivery: `pending` while it is tried, `delivered` once it was answered 2xx, `parked` when "
        "it was given up, `superseded` when its hold had ended first, or its person was erased; `none` if no "
        "subscription wanted it.",
        _one_of(*Delivery.Status, "none"),
    ),
    # Webhooks
    "url": Field(
        "Your endpoint: https, reachable from the internet, a name and no address, port 443 or from 1024.",
        _URL | {"maxLength": 2048},
    ),
    "event_types": Field(
        "Which events you want; `*` is all of them, future ones too.", sent_in="SubscriptionRequest"
    ),
    "Subscription.event_types": _WANTED,
    "NewSubscription.event_types": _WANTED,
    "updated_at": Field("When it last changed.", _TIME),
    "signing_secret": Field(
        "What deliveries are signed with: `whsec_` and base64 of 32 bytes. Shown this once; keep "
        "it on your server.",
        text(1, 255),
    ),
    "revoke_previous": Field("`true` stops all previous secrets at once."),
    "previous_secret_expires_at": Field(
        "Until when the previous secret signs too; null when it was revoked.", _TIME
    ),
    "event_id": Field("The event, the same in all its attempts.", _UUID),
    "event_type": Field("What happened.", _one_of(*EventType)),
    "attempt_number": Field("1 for the first.", _whole(1)),
    "http_status": Field("What your endpoint answered; null when there was no answer.", _whole(100, 999)),
    "error_message": Field("Why it was a failure; null on a 2xx.", text(1, 255)),
    "duration_ms": Field("Milliseconds from start to end.", _whole(0)),
    "attempted_at": Field("When it started.", _TIME),
    "DeliveryAttempt.status": Field("`delivered` on a 2xx, else `failed`.", _one_of("delivered", "failed")),
    "next_attempt_at": Field(
        "When the event is sent again; null when it is not, and on all but its latest attempt.", _TIME
    ),
    "DeliveryAttempt.checkout_uuid": Field("The checkout that the event is about; null when there is none."),
    # Events
    "AuthorizedData.status": Field(kind=_always(Status.AUTHORIZED)),
    "VoidedData.status": Field(kind=_always(Status.VOIDED)),
    "VoidedData.reason": _VOID_REASON,
    "user_uuid": Field(
        "The customer, as in `customer_id`: the same person at your shop, another id at any other.", _UUID
    ),
    "customer_id": Field("The person at your shop: stable here, different at other merchants.", _UUID),
    "subject": Field("`lead` placed the order, `friend` pays a share of it.", _one_of("lead", "friend")),
    "order": Field("Where it happened.", refer("OptInOrder")),
    "payment_request_uuid": Field("The friend's share.", _UUID),
    "OptInOrder.payment_request_uuid": Field("The friend's share; null for the lead."),
    "customer": Field("Whom to write to.", refer("OptInCustomer")),
    "OptInCustomer.name": Field("As known when the box was ticked; null when it is not.", text(1, 255)),
    "email": Field("Entered with this tick. The newest is current.", {"type": "string", "format": "email"}),
    "phone": Field("E.164; null unless the customer has verified it.", text(1, 16)),
    "opt_in": Field("What was agreed to.", refer("OptIn")),
    "email_marketing": Field("true when there is an address to write to, else null.", _TICKED),
    "sms_marketing": Field("true when there is a number to write to, else null.", _TICKED),
    "opted_in_at": Field("When the box was ticked.", _TIME),
    "placement": Field("Where the box stood.", _one_of(*OptIn.Placement)),
    "text_version": Field("Which wording was shown.", _whole(1)),
    "OptInLink.url": Field("Where the box stands; null while you have opt-in off.", _URL),
    "OptInLink.placement": Field(kind=_one_of(*link.PLACEMENTS)),
    # Sandbox
    "card": Field("A test card."),
    "PayRequest.phone": Field("The customer's mobile number."),
    "PayRequest.name": Field(
        "The customer's name, by which mates know them; with `shares` it is Lea if you send none."
    ),
    "challenge": Field("How a 3-D Secure challenge ends."),
    "PayRequest.shares": Field("What mates are asked for; the lead bears what is left."),
    "ShareRequest.name": Field("As the lead would write it."),
    "ShareRequest.amount": Field("Minor units."),
    "PayShareRequest.payment_request_uuid": Field("Which share; without it, the first that is open."),
    "payment_requests": Field("The mates' shares.", _list(refer("PaymentRequest"), maxItems=MAX_PEOPLE - 1)),
    "PaymentRequest.status": _SHARE_STATUS,
    "Share.status": _SHARE_STATUS,
    "seconds": Field("How much time passes."),
    # The token
    "grant_type": Field("Always this.", _always("client_credentials")),
    "client_id": Field("Given to you with your account. Here or in HTTP Basic.", _SENT),
    "client_secret": Field("Shown once when the key is made. Next to `client_id`.", _SENT),
    "TokenRequest.scope": _WANTED_SCOPE,
    "TokenForm.scope": _WANTED_SCOPE,
    "access_token": Field("Send it as `Authorization: Bearer <ACCESS_TOKEN>`.", _STRING),
    "token_type": Field("Always this.", _always("Bearer")),
    "expires_in": Field("Seconds. Keep the token that long.", _whole(1)),
    "scope": Field("What the token may do.", _STRING),
    "TokenError.error": Field(
        "A code of RFC 6749, or `rate_limited`.",
        _one_of(
            "invalid_request",
            "invalid_client",
            "invalid_scope",
            "unsupported_grant_type",
            "unauthorized_client",
            "rate_limited",
            "temporarily_unavailable",
        ),
    ),
    "error_description": Field("What to change, where that helps.", _STRING),
    "RevocationRequest.token": Field("The access token that is to end.", _SENT),
    "RevocationForm.token": Field("The access token that is to end.", _SENT),
    "token_type_hint": Field("`access_token`. Any other hint is ignored: there are no other tokens.", _SENT),
    "issuer": Field("The authorization server.", _URL),
    "token_endpoint": Field("Where a client gets a token.", _URL),
    "revocation_endpoint": Field("Where a client ends a token.", _URL),
    "scopes_supported": Field("Each scope that a key can have.", _list(_STRING)),
    "response_types_supported": Field("Empty: there is no authorization endpoint.", _list(_STRING)),
    "grant_types_supported": Field("`client_credentials`.", _list(_STRING)),
    "token_endpoint_auth_methods_supported": Field(
        "The client by HTTP Basic or in the body.", _list(_STRING)
    ),
    "revocation_endpoint_auth_methods_supported": Field("As at the token endpoint.", _list(_STRING)),
    "service_documentation": Field("The page of the documentation.", _URL),
    # Errors
    "error": Field("What went wrong.", refer("ApiErrorBody")),
    "code": Field(
        "What went wrong. Branch on it; treat one that you do not know by its status.",
        _one_of(*errors.ERRORS),
    ),
    "message": Field("A sentence for a developer: what to do.", _STRING),
    "param": Field("The field at fault, such as `items[2].currency`.", _STRING),
    "details": Field(
        "All field errors at once; expected and actual amount; state and allowed actions.",
        _list(refer("ApiErrorDetail")),
    ),
    "request_id": Field("As in `X-Request-Id`. Tell it to support.", _STRING),
    "doc_url": Field("This code in the documentation.", _URL),
    "expected": Field("The amount that would be right.", _SUM),
    "actual": Field("The amount that was sent.", _SUM),
    "difference": Field("How much more was sent than is right.", _SUM),
    "dispute": Field("The dispute that stands in the way.", refer("Dispute")),
    "ApiErrorDetail.reason": Field("The provider's word for why, such as `insufficient_funds`.", text(1, 40)),
    # Queries
    "query.checkout_uuid": Field("The checkout."),
    "query.status": Field("Only these."),
    "query.merchant_order_id": Field("Only checkouts of this order."),
    "query.created_after": Field("Only what was created after this time."),
    "query.created_before": Field("Only what was created before this time."),
    "query.updated_after": Field(
        "Only what has changed after this time. With `sort=updated_at` the cursor keeps it."
    ),
    "query.sort": Field(
        "`updated_at` lists by the last change, oldest first, and always gives a `next_cursor`: keep it, ask again "
        "with it, and you miss no change."
    ),
    "query.limit": Field("How many a page."),
    "query.placement": Field("Where the link will stand."),
    "query.cursor": Field("`next_cursor` of the page before."),
    "query.type": Field("Only events of this type."),
    "query.event_type": Field("Only events of this type."),
    "query.event_id": Field("Only attempts of this event."),
}
