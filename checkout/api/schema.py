"""Descriptions of the checkout API's endpoints for the OpenAPI document (rule api.document)."""

from checkout.api import responses, serializers, views
from config.lib.api.described import DescribedOperation, DescribedOperations, DescribedResponse

ENDPOINTS: DescribedOperations = {
    (views.Checkouts, "POST"): DescribedOperation(
        "create_checkout",
        "Create a checkout",
        "Creates a checkout for an order. Send the customer to the returned `checkout_url` exactly as it is, "
        "and never construct it yourself. `sum(quantity × unit_price)` of the items must equal "
        "`total_amount`. Lines of category `fee`, `shipping` and `tax` add to the total. Lines of category "
        "`discount`, and only they, have a negative `unit_price`. A `merchant_order_id` can repeat: each "
        "call creates a new checkout, unless it has the same `Idempotency-Key`.",
        {201: DescribedResponse("The checkout waits for payment.", responses.CreatedCheckoutOut)},
        body=serializers.CheckoutIn,
        codes=("merchant_suspended", "invalid_amount_arithmetic"),
    ),
    (views.OneCheckout, "GET"): DescribedOperation(
        "read_checkout",
        "Read a checkout",
        "The response shows the checkout at the moment of the call. If the two minutes of a hold have "
        "passed, the service releases it first. Read a checkout to reconcile missed events, and to see when "
        "a refund has settled.",
        {200: DescribedResponse("The checkout, with the fields of its status.", responses.CheckoutOut)},
        codes=("operation_in_progress",),
    ),
    (views.Capture, "POST"): DescribedOperation(
        "capture_checkout",
        "Capture a held checkout",
        "Takes the full held amount synchronously. After a 200, the money has moved, and you fulfil the "
        "order. The call returns within 8 seconds. It is safe to repeat. For a captured checkout, it returns "
        "200 with the same `captured_at`. If another capture is still open, one call in each process of the "
        "service waits up to two seconds for its outcome. Every other call returns 409 "
        "`operation_in_progress` at once: repeat it after `Retry-After`. From `capture_before` on, the "
        "service refuses the capture, even if the release is not recorded yet. An empty body is the same as "
        "`{}`.",
        {200: DescribedResponse("The money has moved; `status` is `captured`.", responses.CheckoutOut)},
        body=serializers.CaptureIn,
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
        "Releases the hold, or ends a checkout that no one has paid yet. If the money was taken, refund the "
        "checkout instead. For a checkout that is already `voided`, the call returns 200 and sends no second "
        "event. Cancelling an unpaid checkout sends no event, because no authorization was released. An "
        "empty body is the same as `{}`.",
        {200: DescribedResponse("No money is held any more; `status` is `voided`.", responses.CheckoutOut)},
        body=serializers.CancelIn,
        codes=("not_cancellable", "operation_in_progress"),
    ),
    (views.Refund, "POST"): DescribedOperation(
        "refund_checkout",
        "Refund a captured checkout",
        "Returns the full amount to the cards that paid. The service accepts the refund at once. The "
        "refund is `pending` until the provider has confirmed or refused it. Read the checkout until `status` is "
        "`refunded`, because no event reports it. The customer's bank can take a few days more to show the money. A "
        "repeated `merchant_refund_ref` on the same checkout creates no refund. It returns the existing "
        "refund with its current status, also if the refund failed. If a refund fails before any part of it "
        "settles, the checkout is `captured` again, and you can try again with a new reference.",
        {
            204: DescribedResponse("The refund is accepted; the checkout is `refunding`."),
            200: DescribedResponse(
                "The existing refund, because you have used this reference before.", responses.RefundOut
            ),
        },
        body=serializers.RefundIn,
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
        "Newest first, for reconciliation. Send `next_cursor` of one page as `cursor` of the next, with the "
        "same filters. It is null on the last page. With `sort=updated_at`, the list is in the order of the "
        "last change, oldest first. Begin with `updated_after` and continue with `cursor`, which keeps that "
        "start. `next_cursor` is then always present, also on an empty page. Store it, so that you miss no "
        "change.",
        {200: DescribedResponse("One page.", responses.CheckoutListOut)},
        query=serializers.CheckoutListQuery,
        codes=("operation_in_progress",),
    ),
}
