"""The cause and the remedy for each error code, for the documentation page.

The code's status and message are in config/errors.py. Its example is a recorded response.
"""

from typing import NamedTuple


class Cause(NamedTuple):
    """The cause of an error code, and the remedy. Both are CommonMark."""

    words: str
    remedy: str


_ASK_AGAIN = "Wait for `Retry-After` seconds and repeat the same call. This is safe: it takes effect once."

CAUSES = {
    "invalid_json": Cause(
        "The body is not strict JSON. It has, for example, a syntax error, duplicate keys in one object, "
        "NaN, a byte order mark, a lone surrogate, more than 20 levels, or a whole number beyond 64 bits.",
        "`message` names the line and the column. Let a JSON library write the body; do not join strings.",
    ),
    "invalid_cursor": Cause(
        "The `cursor` is cut off or changed. Or it comes from another list, another `sort` or, for events, "
        "other filters.",
        "Send `next_cursor` exactly as you received it, to the list that returned it. Without a cursor, the "
        "list starts again.",
    ),
    "invalid_header": Cause(
        "A header has a value that cannot be used: an `Idempotency-Key` that is empty, too long or not "
        "printable ASCII, or a `Host` that is not ours.",
        "`param` names the header. A UUID is a good key. Call the address that you were given, not an alias "
        "of it.",
    ),
    "missing_token": Cause(
        "The call has no `Authorization: Bearer …` header. Some HTTP clients drop it on a redirect.",
        "Get a token at `POST /oauth/token` and send it with every call.",
    ),
    "invalid_token": Cause(
        "The token has expired (it lives for an hour), or it or its key was revoked. Or it belongs to the "
        "other environment, or the value is not a token.",
        "Get a new token and repeat the call once. If that fails too, check the key in the portal, under "
        "Keys.",
    ),
    "card_declined": Cause(
        "A helper call of the sandbox paid with a card that is declined. `details` has the `reason`: the "
        "bank's (`declined`, `insufficient_funds`, `expired_card`), a failed 3-D Secure challenge, or "
        "`same_card`. `same_card` means that the card that paid the whole order cannot pay a mate's share.",
        "No money is held, and the order or the share can still be paid. Pay with another test card.",
    ),
    "insufficient_scope": Cause(
        "The token lacks the scope that `message` names. Either its key does not have the scope, or the "
        "token was requested with fewer scopes.",
        "Request a token without `scope`. It gets all scopes of its key. If the key lacks the scope, make a "
        "key that has it in the portal, under Keys.",
    ),
    "merchant_suspended": Cause(
        "The operators have suspended you. Create, pay and capture are refused. Read, cancel and refund "
        "still work.",
        "Contact support. Cancel the orders that you cannot fulfil.",
    ),
    "checkout_not_found": Cause(
        "You have no checkout with this id. It is misspelt, or it belongs to the other environment or to "
        "another merchant.",
        "Send the `checkout_uuid` from the response to your create call, to the environment in which you "
        "created the checkout.",
    ),
    "subscription_not_found": Cause(
        "You have not registered a webhook endpoint, or you have ended its subscription.",
        "Register one with `POST /api/merchant/v1/webhooks/subscription`.",
    ),
    "not_found": Cause(
        "The address does not exist: a misspelt path, a slash at its end, or a helper of the sandbox in "
        "production.",
        "Compare the path with this page. Use `checkout_url` as it is, and never construct it.",
    ),
    "method_not_allowed": Cause(
        "The address exists, but does not accept this method.",
        "Use one of the methods that the header `Allow` names.",
    ),
    "request_timeout": Cause(
        "The body did not arrive within ten seconds, or broke off. The call was not carried out, and the "
        "connection ends.",
        "Send the whole body again, with the same `Idempotency-Key`.",
    ),
    "not_capturable": Cause(
        "The checkout is not held now. Its two minutes have passed, it was cancelled, no one has paid, or it "
        "was captured and then refunded. `details` has its `status`.",
        "Do not fulfil the order. Check `status` before you sell its items to another customer. If the hold "
        "has ended, create a new checkout. Capture as soon as `checkout.authorized` arrives.",
    ),
    "not_cancellable": Cause(
        "The money has already moved, or the checkout has ended. `details` has its `status`.",
        "Refund a captured checkout. A checkout that has ended needs no action.",
    ),
    "not_refundable": Cause(
        "The checkout is not captured, a refund is in progress or has settled, or a payer disputes the "
        "payment. In the last case, `details` has the dispute.",
        "Cancel a held checkout instead. In a dispute, the bank decides. An additional refund would pay the "
        "customer twice.",
    ),
    "refund_ref_conflict": Cause(
        "This `merchant_refund_ref` belongs to a refund of another checkout.",
        "Use a separate reference for each refund, such as the order's number followed by a counter.",
    ),
    "operation_in_progress": Cause(
        "A card operation of this checkout is open: a capture, a payment (also one that waits for 3-D Secure), a "
        "refund, or an operation whose answer was lost.",
        _ASK_AGAIN,
    ),
    "rotation_in_progress": Cause(
        "Three secrets already sign: the new one and two previous ones whose two hours are not over. "
        "`details` says when they end.",
        "Wait for the first of these times, or send `revoke_previous` to end the previous secrets at once.",
    ),
    "idempotency_in_progress": Cause(
        "The first call with this `Idempotency-Key` has no response yet. Your client did not wait for it, or "
        "sent the call twice.",
        _ASK_AGAIN,
    ),
    "share_not_open": Cause(
        "A helper call of the sandbox tries to pay or to pledge a share, and no share is open for it. The cost is "
        "not split, the order is not captured yet (`pay-share`) or is paid already (`pledge-share`), the shares are "
        "paid or have ended, or the order ended while the share was being paid.",
        "Call `pay` with `shares`, capture, and then call `pay-share`. Or call `split`, then `pledge-share`, then "
        "`pay`.",
    ),
    "not_payable": Cause(
        "A helper call of the sandbox tries to pay a checkout that is paid, expired or cancelled.",
        "Create a new checkout. `details` says what you can do with this one.",
    ),
    "not_disputed": Cause(
        "A helper call of the sandbox decides a dispute, and the checkout has no open dispute, or not the one "
        "that `dispute_uuid` names.",
        "Pay with the card 4000000000000259, capture, and repeat the read until it shows an open dispute.",
    ),
    "too_many_ticks": Cause(
        "A helper call of the sandbox ticks the opt-in box of an order, or of a mate's share, that already "
        "has 20 ticks. The service never accepts more, however long you wait.",
        "The ticks that were saved before remain, and their events have been sent. Tick the box of a new "
        "checkout.",
    ),
    "payload_too_large": Cause(
        "The body is larger than 256 KiB. It was not read, and the connection ends.",
        "Send fewer items, or less `custom_data`.",
    ),
    "unsupported_media_type": Cause(
        "The `Content-Type` of the body is not JSON, or the body is compressed.",
        "Send `Content-Type: application/json` and no `Content-Encoding`.",
    ),
    "invalid_amount_arithmetic": Cause(
        "`sum(quantity × unit_price)` of all items is not `total_amount`. `details` has both amounts and the "
        "difference.",
        "Send discounts as lines with a negative `unit_price`. Send fees, shipping and tax as lines that add "
        "to the total. Compute in minor units, as integers.",
    ),
    "validation_failed": Cause(
        "Fields or query parameters are missing or wrong. `details` has all of them, and `message` has the "
        "first.",
        "Correct what each `message` in `details` names. Then send the call again with a new "
        "`Idempotency-Key`.",
    ),
    "partial_capture_not_supported": Cause(
        "The `amount` of the capture is not the checkout's.",
        "Send `{}`. To charge less, cancel and create a new checkout.",
    ),
    "partial_refund_not_supported": Cause(
        "The `amount` of the refund is not the checkout's.",
        "Leave `amount` out: a refund returns the full amount.",
    ),
    "idempotency_key_reused": Cause(
        "This `Idempotency-Key` was sent with another method, path or body within the last 24 hours. Bodies "
        "are compared byte by byte.",
        "Use a new key for each new request, such as your order's number followed by the number of the "
        "attempt. To repeat a request, send exactly the bytes of the first one.",
    ),
    "rate_limited": Cause(
        "Your key, or all your keys together, call more often than the limits allow; see Limits.",
        "Wait for `Retry-After` seconds. Read a checkout when an event reports it, instead of polling it.",
    ),
    "internal_error": Cause(
        "An error occurred on our side. It is in our logs under the `request_id`.",
        "Send the call again with the same `Idempotency-Key`, or read the checkout. If the error persists, "
        "give support the `request_id`.",
    ),
    "provider_error": Cause(
        "The card provider refused the capture. `details` has its `reason` if it named one.",
        "Nothing has changed. Read the checkout. While it is `authorized`, capture again or cancel.",
    ),
    "service_unavailable": Cause(
        "The database is not available, too many calls wait for the card provider, or the operators have "
        "stopped all merchants.",
        _ASK_AGAIN,
    ),
    "outcome_unknown": Cause(
        "The card provider did not answer in time. The money might have moved. The service asks the provider "
        "until the outcome is known.",
        "Do not fulfil the order yet. Wait for `Retry-After` seconds and capture again, or read the checkout "
        "until it is `captured` or `voided`.",
    ),
}
