"""The cause and the remedy of each error code, for the documentation page.

The code's status and message are in config/errors.py. Its example is a recorded answer.
"""

from typing import NamedTuple


class Cause(NamedTuple):
    """The cause of an error code and its remedy, both as CommonMark."""

    words: str
    remedy: str


_ASK_AGAIN = "Wait for `Retry-After` seconds and send the same call again. It is safe: nothing happens twice."

CAUSES = {
    "invalid_json": Cause(
        "The body is no strict JSON: a syntax error, a key twice in one object, NaN, a byte order mark, half a "
        "surrogate pair, more than 20 levels, or a whole number beyond 64 bits.",
        "`message` names the line and the column. Let a JSON library write the body instead of joining texts.",
    ),
    "invalid_cursor": Cause(
        "The `cursor` was cut, changed, or comes from another list or another `sort`.",
        "Send `next_cursor` exactly as you got it, to the list that gave it. Without a cursor the list starts anew.",
    ),
    "invalid_header": Cause(
        "A header has a value that cannot be used: an `Idempotency-Key` that is empty, too long or not printable "
        "ASCII, or a `Host` that is not ours.",
        "`param` names the header. A UUID is a good key. Call the address that you were given, not an alias of it.",
    ),
    "missing_token": Cause(
        "The call has no `Authorization: Bearer …` header. Some HTTP clients drop it on a redirect.",
        "Get a token at `POST /oauth/token` and send it with every call.",
    ),
    "invalid_token": Cause(
        "The token has ended (it lives for an hour), its key was revoked, it is of the other environment, or what was "
        "sent is no token.",
        "Get a new token and repeat the call once. If that fails too, look at the key in the portal, under Keys.",
    ),
    "card_declined": Cause(
        "A helper call of the sandbox paid with a card that is declined; `details` has the `reason`: the bank's "
        "(`declined`, `insufficient_funds`, `expired_card`), a failed 3-D Secure challenge, or `same_card`: a mate's "
        "share cannot be paid with the card that paid the whole order.",
        "Nothing is held, and what was to be paid can still be paid. Pay with another test card.",
    ),
    "insufficient_scope": Cause(
        "The token lacks the scope that `message` names: its key does not have it, or the token was asked for with "
        "fewer.",
        "Ask for a token without `scope`, which has all that the key has. If the key lacks it, make one with it in the "
        "portal, under Keys.",
    ),
    "merchant_suspended": Cause(
        "The operators have suspended you: create, pay and capture are refused. Read, cancel and refund go on.",
        "Write to support. Cancel what you cannot fulfil.",
    ),
    "checkout_not_found": Cause(
        "You have no checkout with this id: it is misspelt, of the other environment, or another merchant's.",
        "Send the `checkout_uuid` that the answer to create gave you, to the environment in which you made it.",
    ),
    "subscription_not_found": Cause(
        "You have registered no webhook endpoint, or ended it.",
        "Register one with `POST /api/merchant/v1/webhooks/subscription`.",
    ),
    "not_found": Cause(
        "There is no such address: a misspelt path, a slash at its end, or a helper of the sandbox in production.",
        "Compare the path with this page. `checkout_url` is used as it is, never built.",
    ),
    "method_not_allowed": Cause(
        "The address is there, but does not take this method.",
        "Take one of those that the header `Allow` names.",
    ),
    "request_timeout": Cause(
        "The body did not come within ten seconds, or broke off. It was not read, and the connection ends.",
        "Send it again, whole, under the same `Idempotency-Key`.",
    ),
    "not_capturable": Cause(
        "The checkout is not held any more, or not yet: its two minutes have passed, it was cancelled, nobody has "
        "paid, or it was captured and refunded since. `details` has its `status`.",
        "Do not fulfil the order; look at `status` before you give its seats away. When the hold has ended, create a "
        "new checkout. Capture as soon as `checkout.authorized` arrives.",
    ),
    "not_cancellable": Cause(
        "The money has moved already, or the checkout has ended. `details` has its `status`.",
        "Refund a captured checkout. Whatever has ended needs nothing.",
    ),
    "not_refundable": Cause(
        "Nothing was captured, a refund is under way or has settled, or a payer disputes the payment: then `details` "
        "has the dispute.",
        "Cancel a held checkout instead. Under dispute the bank decides: refunding too would pay twice.",
    ),
    "refund_ref_conflict": Cause(
        "This `merchant_refund_ref` is that of a refund of another checkout.",
        "Use a reference per refund, such as the order's with a number behind it.",
    ),
    "operation_in_progress": Cause(
        "A card operation of this checkout is open: a capture, a payment, a refund, or one whose answer was lost.",
        _ASK_AGAIN,
    ),
    "rotation_in_progress": Cause(
        "Three secrets sign already: the new one and two whose two hours are not over. `details` says when they end.",
        "Wait for the first of those times, or send `revoke_previous` to end the previous ones at once.",
    ),
    "idempotency_in_progress": Cause(
        "The first call with this `Idempotency-Key` is not answered yet: your client was impatient, or sent it twice.",
        _ASK_AGAIN,
    ),
    "share_not_open": Cause(
        "A helper call of the sandbox wants to pay a share, and none is open: the cost is not split, not captured yet, "
        "or paid.",
        "Pay with `shares`, capture, then pay them.",
    ),
    "not_payable": Cause(
        "A helper call of the sandbox wants to pay a checkout that is paid, expired or cancelled.",
        "Create a new checkout. `details` says what may be done with this one.",
    ),
    "too_many_ticks": Cause(
        "A helper call of the sandbox ticks the opt-in box of an order, or of a mate's share, that has had 20 ticks. "
        "More are never taken, however long you wait.",
        "What was saved before stands, and its events have gone out. Tick the box of a new checkout.",
    ),
    "payload_too_large": Cause(
        "The body is larger than 256 KiB. It was not read, and the connection ends.",
        "Send fewer items, or less `custom_data`.",
    ),
    "unsupported_media_type": Cause(
        "The body is no JSON by its `Content-Type`, or it is compressed.",
        "Send `Content-Type: application/json` and no `Content-Encoding`.",
    ),
    "invalid_amount_arithmetic": Cause(
        "`sum(quantity × unit_price)` of all items is not `total_amount`; `details` has both, and the difference.",
        "Send discounts as lines with a negative `unit_price`, fees, shipping and tax as lines that add. Compute in "
        "minor units, as integers.",
    ),
    "validation_failed": Cause(
        "Fields or query parameters are missing or wrong. `details` has all of them, `message` the first.",
        "Mend what each `message` in `details` asks for, and send it again, with a new `Idempotency-Key`.",
    ),
    "partial_capture_not_supported": Cause(
        "The `amount` of the capture is not the checkout's.",
        "Send `{}`. To charge less, cancel and create a new checkout.",
    ),
    "partial_refund_not_supported": Cause(
        "The `amount` of the refund is not the checkout's.",
        "Leave `amount` out: a refund gives back everything.",
    ),
    "idempotency_key_reused": Cause(
        "This `Idempotency-Key` came with another method, path or body within the last 24 hours. Bodies are compared "
        "by their bytes.",
        "Use a new key for each new request, such as your order's number with the attempt's behind it; repeat a "
        "request with the very bytes of the first.",
    ),
    "rate_limited": Cause(
        "Your key, or all your keys together, call more often than the limits allow; see Limits.",
        "Wait for `Retry-After` seconds. Read a checkout when an event tells of it instead of asking all the time.",
    ),
    "internal_error": Cause(
        "Something broke on our side. It is in our logs under the `request_id`.",
        "Send the call again under the same `Idempotency-Key`, or read the checkout. If it stays, tell support the "
        "`request_id`.",
    ),
    "provider_error": Cause(
        "The card provider has refused the capture; `details` has its `reason` when it named one.",
        "Nothing has changed. Read the checkout: while it is `authorized`, capture again or cancel.",
    ),
    "service_unavailable": Cause(
        "The database is out, or too many calls wait for the card provider.",
        _ASK_AGAIN,
    ),
    "outcome_unknown": Cause(
        "The card provider gave no answer in time: the money may have moved or not. We ask until we know.",
        "Do not fulfil yet. Wait for `Retry-After` seconds and capture again, or read the checkout until it is "
        "`captured` or `voided`.",
    ),
}
