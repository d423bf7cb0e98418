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


# The events that the feed lists.
_LISTED = ("CheckoutAuthorized", "CheckoutVoided", "MarketingOptedIn", "Withheld", "Other")


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
_WANTED_SCOPE = Field("Scopes, separated by spaces. Without it, the token gets all scopes of the key.")
_TICKED, _SUM = {"type": "boolean"}, {"type": "integer", "format": "int64"}
_FEE = Field("Reserved. Currently always 0.", _whole(0))
_VOID_REASON = Field(
    "`merchant_cancel`: you cancelled it. `auth_expired`: it was not captured in time.",
    _one_of(*VoidReason),
)
_WANTED = Field("The event types that you receive. `*` means all of them.", _list(_one_of(*SUBSCRIBABLE)))
_SHARE_STATUS = Field("The status of the mate's share.", _one_of(*ShareStatus))

FIELDS = {
    # Checkouts
    "checkout_uuid": Field("The id of the checkout, for capture, cancel, refund, reads and events.", _UUID),
    "merchant_order_id": Field("Your own reference for the order. It can repeat.", sent_in="CheckoutRequest"),
    "status": Field("The status of the checkout; see States.", _one_of(*Status)),
    "CreatedCheckout.status": Field(kind=_always(Status.CREATED)),
    "amount": Field("The amount in minor units, such as pence.", _whole(1, MAXIMUM)),
    "total_amount": Field(
        "The sum of all items in minor units. In some currencies, a card can be charged only a narrower "
        "range of amounts. The error then names the range."
    ),
    "currency": Field("ISO 4217 code in upper case, such as `GBP`.", currency()),
    "checkout_url": Field("The hosted page. Send the customer to this URL, exactly as it is.", _URL),
    "expires_at": Field("`merchant_expires_at` as you sent it. Null if you did not send it.", _TIME),
    "created_at": Field("When it was created.", _TIME),
    "payable_until": Field(
        "When the unpaid checkout expires automatically, regardless of who set the time.", _TIME
    ),
    "metadata": Field(
        "Your own data for the checkout. Every read returns it, or `{}` if you sent none. Payers never see "
        "it. Do not put personal data in it.",
        refer("Metadata"),
    ),
    "CheckoutRequest.metadata": Field(
        "Your own data for the checkout: at most 50 keys of 1 to 40 characters, each with a string of at "
        "most 500 characters, 8 KiB in all. Every read returns it. Payers never see it. Do not put personal "
        "data in it."
    ),
    "CheckoutRequest.customer": Field(
        "What you know about the customer, to prefill the page. Each field is optional. The API never "
        "returns them, and the service deletes them a day after the checkout's end."
    ),
    "CustomerRequest.phone": Field(
        "The customer's mobile number. Without `+` and a country code, it is a number of your own country. "
        "The page shows its last four digits, and texts a code to it when the customer asks for one."
    ),
    "CustomerRequest.name": Field("The customer's name. The page fills it in after the code is entered."),
    "locale": Field(
        "The language of the page and of its text messages, such as `fr` or `fr-CA`, unless the customer "
        "chooses another. If the page does not have the language, this field has no effect."
    ),
    "items": Field("The lines, in the order that you sent.", _list(refer("Item"), minItems=1, maxItems=100)),
    "available_actions": Field(
        "What you can do with the checkout now.", _list(_one_of("capture", "cancel", "refund"), maxItems=2)
    ),
    "expired_at": Field("When the unpaid checkout expired.", _TIME),
    "authorized_at": Field("When the card was held.", _TIME),
    "capture_before": Field("When the hold ends automatically: two minutes after `authorized_at`.", _TIME),
    "voided_at": Field("When the hold was released, or the unpaid checkout was cancelled.", _TIME),
    "void_reason": _VOID_REASON,
    "captured_at": Field("When the money moved.", _TIME),
    "refunded_amount": Field(
        "Minor units returned to the customer: 0 until the refund has settled, then the full amount.",
        _whole(0, MAXIMUM),
    ),
    "last_refund_at": Field("When the refund settled. Null until then.", _TIME),
    "merchant_processor_fee": _FEE,
    "merchant_service_fee": _FEE,
    "refunds": Field("The refunds, newest first, including failed ones.", _list(refer("Refund"), minItems=1)),
    "pending_operation": Field(
        "The card operation that is open now or is about to be sent. While the checkout is `created` or "
        "`authorized`, no other action on it is possible until this field is gone.",
        _one_of(*Operation.Kind),
    ),
    "shares": Field(
        "How much the customer's mates have paid of their shares. `amount` and refunds do not depend on it.",
        refer("Shares"),
    ),
    "disputes": Field(
        "The payers' disputes, oldest first: a payer has asked their bank for the money back. While a "
        "dispute is open, the checkout cannot be refunded. After a lost one, a refund returns only what it "
        "did not take.",
        _list(refer("Dispute"), minItems=1),
    ),
    "dispute_uuid": Field("The id of the dispute.", _UUID),
    "Dispute.amount": Field("Minor units that the payer's bank has taken back."),
    "Dispute.reason": Field("The reason, as the provider names it.", text(1, 40)),
    "Dispute.status": Field(
        "`open` until the bank decides. `won`: the money is yours again. `lost`: the payer keeps it.",
        _one_of(*Dispute.Status),
    ),
    "opened_at": Field("When the payer's bank opened it.", _TIME),
    "respond_by": Field(
        "Until when the operators can submit evidence. Null if there is no such time.", _TIME
    ),
    "count": Field("How many mates were asked to pay.", _whole(1, MAX_PEOPLE - 1)),
    "paid_count": Field(
        "How many of them have paid. A mate who is refunded no longer counts.",
        _whole(0, MAX_PEOPLE - 1),
    ),
    "paid_amount": Field("Minor units that these mates have paid.", _whole(0, MAXIMUM)),
    "return_url": Field(
        "Where the customer lands afterwards: an absolute https URL without a user name. If you keep a list "
        "of hosts in the portal, its host must be on the list. The service does not change the URL: put your "
        "order's number in it. It is only a confirmation page, never a reason to fulfil."
    ),
    "cancel_url": Field(
        "Where the customer lands after giving up: an absolute https URL without a user name. If you keep a "
        "list of hosts in the portal, its host must be on the list. The service does not change the URL."
    ),
    "merchant_expires_at": Field(
        "When the unpaid checkout expires: 1 minute to 24 hours ahead, with an offset. Without it, the time "
        "that you have set in the portal applies, otherwise 60 minutes after creation."
    ),
    "CheckoutRequest.items": Field("The lines of the order. They add up to `total_amount`."),
    # Items
    "item_ref": Field("Your own reference for the line.", sent_in="ItemRequest"),
    "name": Field("The name that the customer sees.", sent_in="ItemRequest"),
    "quantity": Field("The number of units.", sent_in="ItemRequest"),
    "unit_price": Field(
        "Minor units for one unit. Negative on a `discount` line, and only there.", sent_in="ItemRequest"
    ),
    "category": Field(
        "A slug. The known ones are ticket, merchandise, food_and_drink, accommodation, travel, experience, "
        "membership, service, donation, shipping, fee, tax, discount and other. The service keeps an unknown "
        "slug and shows it as other.",
        sent_in="ItemRequest",
    ),
    "custom_data": Field(
        "Your own object: at most 8 KiB (with numbers written out), 4 levels and 50 keys. On a ticket, the "
        "service checks `event_id` (string), `event_start` (timestamp) and `time_zone` (IANA name) if they "
        "are present.",
        sent_in="ItemRequest",
    ),
    "ItemRequest.currency": Field("The same currency as the checkout's."),
    # Capture, cancel, refund
    "CaptureRequest.amount": Field("The full amount, which is also the default."),
    "CancelRequest.reason": Field("A note for your own records. No customer sees it."),
    "merchant_refund_ref": Field(
        "Your own reference, unique among all your refunds. Repeating it for the same checkout is safe.",
        sent_in="RefundRequest",
    ),
    "refund_uuid": Field("The id of the refund.", _UUID),
    "reason": Field("Your reason, in your own words.", text(1, 500)),
    "RefundRequest.amount": Field("The full amount. You can leave it out."),
    "Refund.status": Field(
        "`pending` until the provider has confirmed or refused the refund.", _one_of(*Refund.Status)
    ),
    "settled_at": Field("When the provider confirmed the refund. Null until then.", _TIME),
    "failure_reason": Field("Why the provider refused the refund. Null if it did not.", text(1, 40)),
    # Lists
    "checkouts": Field(
        "Newest first. With `sort=updated_at`, the oldest change comes first.",
        _list(refer("Checkout"), maxItems=200),
    ),
    "deliveries": Field("The attempts, newest first.", _list(refer("DeliveryAttempt"), maxItems=200)),
    "next_cursor": Field("Send it as `cursor` for the next page. Null on the last page.", text(1, 500)),
    "events": Field("In the order in which they were written.", _list(refer("ListedEvent"), maxItems=200)),
    "EventFeed.next_cursor": Field("Keep it. Send it as `cursor` to get the events after this page."),
    "event": Field(
        "The envelope, byte for byte as it is sent. `data` is null if you may not see it, or if it was "
        "deleted.",
        {"type": "object", "anyOf": [refer(f"{name}Event") for name in _LISTED]},
    ),
    "delivery_status": Field(
        "The status of its delivery. `pending`: more attempts follow. `delivered`: your endpoint answered "
        "2xx. `parked`: the service gave up. `superseded`: the hold ended first, or the person was erased. "
        "`none`: no subscription wanted the event.",
        _one_of(*Delivery.Status, "none"),
    ),
    # Webhooks
    "url": Field(
        "Your endpoint: an https URL that is reachable from the internet, with a host name and not an IP "
        "address, on port 443 or on 1024 and above.",
        _URL | {"maxLength": 2048},
    ),
    "event_types": Field(
        "The event types that you want. `*` means all of them, including future ones.",
        sent_in="SubscriptionRequest",
    ),
    "Subscription.event_types": _WANTED,
    "NewSubscription.event_types": _WANTED,
    "updated_at": Field("When it last changed.", _TIME),
    "signing_secret": Field(
        "The secret that signs your deliveries: `whsec_` and base64 of 32 bytes. It is shown only this once. "
        "Keep it on your server.",
        text(1, 255),
    ),
    "revoke_previous": Field("`true` stops all previous secrets at once."),
    "previous_secret_expires_at": Field(
        "Until when the previous secret also signs. Null if it was revoked.", _TIME
    ),
    "event_id": Field("The id of the event, the same in all its attempts.", _UUID),
    "event_type": Field("The type of the event.", _one_of(*EventType)),
    "attempt_number": Field("1 for the first attempt.", _whole(1)),
    "http_status": Field("The status of your endpoint's answer. Null if there was none.", _whole(100, 999)),
    "error_message": Field("Why the attempt failed. Null on a 2xx.", text(1, 255)),
    "duration_ms": Field("The attempt's duration in milliseconds.", _whole(0)),
    "attempted_at": Field("When the attempt started.", _TIME),
    "DeliveryAttempt.status": Field("`delivered` on a 2xx, else `failed`.", _one_of("delivered", "failed")),
    "next_attempt_at": Field(
        "When the event is sent again. Null if it is not, and on all attempts but its latest.", _TIME
    ),
    "DeliveryAttempt.checkout_uuid": Field("The checkout that the event is about. Null if there is none."),
    # Events
    "AuthorizedData.status": Field(kind=_always(Status.AUTHORIZED)),
    "VoidedData.status": Field(kind=_always(Status.VOIDED)),
    "VoidedData.reason": _VOID_REASON,
    "user_uuid": Field(
        "The customer's id, the same as `customer_id`: stable at your shop, different at other merchants.",
        _UUID,
    ),
    "customer_id": Field("The person's id: stable at your shop, different at other merchants.", _UUID),
    "subject": Field("`lead` placed the order. `friend` pays a share of it.", _one_of("lead", "friend")),
    "order": Field("The order on which the box was ticked.", refer("OptInOrder")),
    "payment_request_uuid": Field("The id of the friend's share.", _UUID),
    "OptInOrder.payment_request_uuid": Field("The id of the friend's share. Null for the lead."),
    "customer": Field("The person to write to.", refer("OptInCustomer")),
    "OptInCustomer.name": Field("As known when the box was ticked. Null if it was not known.", text(1, 255)),
    "email": Field("Entered with this tick. The newest is current.", {"type": "string", "format": "email"}),
    "phone": Field("In E.164. Null unless the customer has verified it.", text(1, 16)),
    "opt_in": Field("What the person agreed to.", refer("OptIn")),
    "email_marketing": Field("true if there is an address to write to, otherwise null.", _TICKED),
    "sms_marketing": Field("true if there is a number to write to, otherwise null.", _TICKED),
    "opted_in_at": Field("When the box was ticked.", _TIME),
    "placement": Field("Where the box was shown.", _one_of(*OptIn.Placement)),
    "text_version": Field("The version of the wording that was shown.", _whole(1)),
    "OptInLink.url": Field("The link to the box. Null while you have opt-in off.", _URL),
    "OptInLink.placement": Field(kind=_one_of(*link.PLACEMENTS)),
    # Sandbox
    "card": Field("A test card."),
    "PayRequest.phone": Field("The customer's mobile number."),
    "PayRequest.name": Field(
        "The customer's name, which mates see. With `shares`, it is Lea if you send none and none is known."
    ),
    "challenge": Field("How a 3-D Secure challenge ends."),
    "PayRequest.shares": Field("The shares that mates are asked to pay. The lead bears the rest."),
    "ShareRequest.name": Field("The mate's name, as the lead would write it."),
    "ShareRequest.amount": Field("The amount of the share in minor units."),
    "PayShareRequest.payment_request_uuid": Field("The share to pay. Without it, the first open one."),
    "payment_requests": Field("The mates' shares.", _list(refer("PaymentRequest"), maxItems=MAX_PEOPLE - 1)),
    "PaymentRequest.status": _SHARE_STATUS,
    "Share.status": _SHARE_STATUS,
    "seconds": Field("How many seconds pass."),
    # The token
    "grant_type": Field("Always this value.", _always("client_credentials")),
    "client_id": Field("The client id of your key. Send it here or by HTTP Basic.", _SENT),
    "client_secret": Field("Shown once when the key is made. Send it with `client_id`.", _SENT),
    "TokenRequest.scope": _WANTED_SCOPE,
    "TokenForm.scope": _WANTED_SCOPE,
    "access_token": Field("Send it as `Authorization: Bearer <ACCESS_TOKEN>`.", _STRING),
    "token_type": Field("Always this value.", _always("Bearer")),
    "expires_in": Field("The token's lifetime in seconds. Keep it that long.", _whole(1)),
    "scope": Field("The scopes of the token, separated by spaces.", _STRING),
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
    "error_description": Field("What to change, if that helps.", _STRING),
    "RevocationRequest.token": Field("The access token to revoke.", _SENT),
    "RevocationForm.token": Field("The access token to revoke.", _SENT),
    "token_type_hint": Field("`access_token`. The service ignores any other hint.", _SENT),
    "issuer": Field("The authorization server.", _URL),
    "token_endpoint": Field("Where a client gets a token.", _URL),
    "revocation_endpoint": Field("Where a client ends a token.", _URL),
    "scopes_supported": Field("All scopes that a key can have.", _list(_STRING)),
    "response_types_supported": Field("Empty, because there is no authorization endpoint.", _list(_STRING)),
    "grant_types_supported": Field("`client_credentials`.", _list(_STRING)),
    "token_endpoint_auth_methods_supported": Field(
        "How a client authenticates: by HTTP Basic or in the body.", _list(_STRING)
    ),
    "revocation_endpoint_auth_methods_supported": Field("The same as at the token endpoint.", _list(_STRING)),
    "service_documentation": Field("The documentation page.", _URL),
    # Errors
    "error": Field("What went wrong.", refer("ApiErrorBody")),
    "code": Field(
        "What went wrong. Branch on it. Treat an unknown code by its HTTP status.",
        _one_of(*errors.ERRORS),
    ),
    "message": Field("A sentence for a developer that says what to do.", _STRING),
    "param": Field("The field at fault, such as `items[2].currency`.", _STRING),
    "details": Field(
        "All field errors at once, the expected and actual amount, or the status and allowed actions.",
        _list(refer("ApiErrorDetail")),
    ),
    "request_id": Field("The same id as in `X-Request-Id`. Quote it when you contact support.", _STRING),
    "doc_url": Field("The description of this code in the documentation.", _URL),
    "expected": Field("The amount that would be correct.", _SUM),
    "actual": Field("The amount that was sent.", _SUM),
    "difference": Field("How much more was sent than is correct.", _SUM),
    "dispute": Field("The dispute that prevents the refund.", refer("Dispute")),
    "ApiErrorDetail.reason": Field("The provider's reason, such as `insufficient_funds`.", text(1, 40)),
    # Queries
    "query.checkout_uuid": Field("The id of the checkout."),
    "query.status": Field("Only entries with this status."),
    "query.merchant_order_id": Field("Only checkouts of this order."),
    "query.created_after": Field("Only entries that were created after this time."),
    "query.created_before": Field("Only entries that were created before this time."),
    "query.updated_after": Field(
        "Only checkouts that changed after this time. With `sort=updated_at`, the cursor keeps this time."
    ),
    "query.sort": Field(
        "`updated_at` lists by the last change, oldest first, and always returns a `next_cursor`. Keep it "
        "and continue with it, and you miss no change."
    ),
    "query.limit": Field("How many entries a page has."),
    "query.placement": Field("Where you show the link."),
    "query.cursor": Field("`next_cursor` of the previous page."),
    "query.type": Field("Only events of this type."),
    "query.event_type": Field("Only events of this type."),
    "query.event_id": Field("Only attempts of this event."),
}
