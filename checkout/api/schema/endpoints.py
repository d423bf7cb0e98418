"""Endpoints of the checkout API, as the OpenAPI document describes them (rule api.document)."""

from checkout.api import serializers, views
from config.lib.described import DescribedOperation, DescribedOperations, DescribedResponse

ENDPOINTS: DescribedOperations = {
    (views.Checkouts, "POST"): DescribedOperation(
        "create_checkout",
        "Create a checkout",
        "Makes a checkout for an order. Send the customer to the returned `checkout_url` exactly as it is; never "
        "build it yourself. `sum(quantity × unit_price)` of the items must be `total_amount`: lines of category "
        "`fee`, `shipping` and `tax` add, lines of category `discount` (and only they) carry a negative "
        "`unit_price`. A `merchant_order_id` may repeat: each call makes a new checkout, unless it carries the "
        "same `Idempotency-Key`.",
        {201: DescribedResponse("The checkout waits for its customer.", "CreatedCheckout")},
        takes=serializers.CheckoutIn,
        codes=("merchant_suspended", "invalid_amount_arithmetic"),
    ),
    (views.OneCheckout, "GET"): DescribedOperation(
        "read_checkout",
        "Read a checkout",
        "What you read is true at that moment: a hold whose two minutes have passed is released before the "
        "answer is made. Read a checkout to reconcile missed events, and to see when a refund has settled.",
        {200: DescribedResponse("The whole checkout, with the fields that its state has.", "Checkout")},
        codes=("operation_in_progress",),
    ),
    (views.Capture, "POST"): DescribedOperation(
        "capture_checkout",
        "Capture a held checkout",
        "Takes the held money, all of it, synchronously: after a 200 it has moved, and you fulfil the order. It "
        "answers within 8 seconds. Repeating it is safe: a captured checkout answers 200 with the same "
        "`captured_at`, and a capture that is still open is joined. From `capture_before` on it is refused, "
        "whether or not the release has been noticed yet. No body is the same as `{}`.",
        {200: DescribedResponse("The money has moved; `status` is `captured`.", "Checkout")},
        takes=serializers.CaptureIn,
        codes=(
            "merchant_suspended",
            "not_capturable",
            "operation_in_progress",
            "partial_capture_not_supported",
            "provider_error",
            "outcome_unknown",
        ),
    ),
    (views.Cancel, "POST"): DescribedOperation(
        "cancel_checkout",
        "Cancel an unpaid or held checkout",
        "Releases the hold, or ends a checkout that nobody has paid yet. Money that was taken is refunded "
        "instead. A checkout that is `voided` already answers 200, and no second event is sent. Cancelling an "
        "unpaid checkout sends no event: no authorization was released. No body is the same as `{}`.",
        {200: DescribedResponse("Nothing is held any more; `status` is `voided`.", "Checkout")},
        takes=serializers.CancelIn,
        codes=("not_cancellable", "operation_in_progress"),
    ),
    (views.Refund, "POST"): DescribedOperation(
        "refund_checkout",
        "Refund a captured checkout",
        "Gives everything back to the cards that paid. It is accepted at once and settles later: read the "
        "checkout until `status` is `refunded`. No event tells it. Repeating a `merchant_refund_ref` on the same "
        "checkout creates nothing and answers with the refund as it stands, also when it has failed; after a "
        "failed one the checkout is `captured` again, and a new reference tries again.",
        {
            204: DescribedResponse("The refund is accepted; the checkout is `refunding`."),
            200: DescribedResponse("This reference has been used before: the refund as it stands.", "Refund"),
        },
        takes=serializers.RefundIn,
        codes=(
            "not_refundable",
            "refund_ref_conflict",
            "operation_in_progress",
            "partial_refund_not_supported",
        ),
    ),
    (views.Checkouts, "GET"): DescribedOperation(
        "list_checkouts",
        "List checkouts",
        "Newest first, for reconciliation. Give `next_cursor` of one page as `cursor` of the next, with the same "
        "filters; it is null on the last page. With `sort=updated_at` by the last change, oldest first: begin with "
        "`updated_after`, then go on with `cursor`, which keeps that start and is always there, also on an empty "
        "page; keep it, and you miss no change.",
        {200: DescribedResponse("One page.", "CheckoutList")},
        query=serializers.CheckoutListQuery,
        codes=("operation_in_progress",),
    ),
}
