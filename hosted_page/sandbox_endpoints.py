"""The helper API, as its document tells it (INTERFACE.md 7)."""

from checkout.api.answers import CheckoutOut
from config.lib.endpoint import Answer, Endpoint, Endpoints
from hosted_page import sandbox_api

PAY = Endpoint(
    "sandbox_pay",
    "Pay as the customer",
    "Does what the customer does on the page: signs in with `phone` and pays with `card`, a test card. The "
    "event `checkout.authorized` goes out as it does for a real customer.",
    {200: Answer("The card is held; `status` is `authorized`.", CheckoutOut)},
    takes=sandbox_api.PayIn,
    codes=("card_declined", "merchant_suspended", "not_payable", "operation_in_progress"),
)
ADVANCE = Endpoint(
    "sandbox_advance",
    "Let time pass",
    "Brings whatever is still due of this checkout nearer by `seconds`: `capture_before`, the unpaid "
    "deadline, pending refunds, retries of its deliveries. What has happened never moves.",
    {200: Answer("The checkout as it is then.", CheckoutOut)},
    takes=sandbox_api.AdvanceIn,
    codes=("operation_in_progress",),
)

ENDPOINTS: Endpoints = {
    (sandbox_api.Pay, "POST"): PAY,
    (sandbox_api.Advance, "POST"): ADVANCE,
}
