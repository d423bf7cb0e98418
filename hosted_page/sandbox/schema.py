"""The helper API's part of the OpenAPI document."""

from checkout.api.responses import CheckoutOut
from config.lib.api.described import DescribedOperation, DescribedOperations, DescribedResponse
from hosted_page.sandbox import responses, views

ENDPOINTS: DescribedOperations = {
    (views.Pay, "POST"): DescribedOperation(
        "sandbox_pay",
        "Pay as the customer",
        "Does what the customer does on the page: signs in with `phone`, gives a `name`, asks mates for "
        "`shares` if there are any, and pays with `card`, a test card. The event `checkout.authorized` is "
        "sent as for a real customer.",
        {200: DescribedResponse("The card is held; `status` is `authorized`.", responses.SplitCheckoutOut)},
        body=views.PayIn,
        codes=("card_declined", "merchant_suspended", "not_payable", "operation_in_progress"),
    ),
    (views.Split, "POST"): DescribedOperation(
        "sandbox_split",
        "Get everyone in first",
        "Acts as a customer who gets everyone in before paying: signs in with `phone`, gives a `name`, and "
        "asks mates for `shares`. Mates can then pledge their shares until the checkout is paid or expires. At "
        "least 10 minutes must be left until then. Sending it again changes the split: a share that stays the "
        "same keeps its pledge. `sandbox_pay` then takes no `shares`.",
        {200: DescribedResponse("The checkout with its shares.", responses.SplitCheckoutOut)},
        body=views.SplitIn,
        codes=("not_payable", "operation_in_progress"),
    ),
    (views.PledgeShare, "POST"): DescribedOperation(
        "sandbox_pledge_share",
        "Pledge a share as a mate",
        "Does what a mate does at the pay link before the order is paid: signs in, and has a card held for one "
        "open share. When you capture the checkout, the card is charged. If the checkout ends without a "
        "capture, the hold is released.",
        {200: DescribedResponse("The share is pledged.", responses.ShareOut)},
        body=views.PayShareIn,
        codes=("card_declined", "merchant_suspended", "operation_in_progress", "share_not_open"),
    ),
    (views.PayShare, "POST"): DescribedOperation(
        "sandbox_pay_share",
        "Pay a share as a mate",
        "Does what a mate does at the pay link: signs in and pays one open share. Shares open with the "
        "capture. The mate's payment goes to the lead's card. In this API, it changes only `shares`.",
        {200: DescribedResponse("The share is paid.", responses.ShareOut)},
        body=views.PayShareIn,
        codes=("card_declined", "merchant_suspended", "operation_in_progress", "share_not_open"),
    ),
    (views.TickOptIn, "POST"): DescribedOperation(
        "sandbox_opt_in",
        "Tick the opt-in box",
        "Does what a customer does who ticks your marketing box. The event `marketing.opted_in` is sent for "
        "every tick. `event_id` is null while you have opt-in off. An order accepts 20 ticks, and each of "
        "its shares another 20.",
        {200: DescribedResponse("Ticked.", responses.TickedOut)},
        body=views.OptInIn,
        codes=("too_many_ticks",),
    ),
    (views.DecideDispute, "POST"): DescribedOperation(
        "sandbox_decide_dispute",
        "Decide a dispute as the bank",
        "Lets the bank decide an open dispute. A dispute opens 2 s after the capture of a payment with the card "
        "4000000000000259. If `result` is `won`, the checkout can be refunded again. If it is `lost`, the payer "
        "keeps the money.",
        {200: DescribedResponse("The dispute is decided; its `status` is `won` or `lost`.", CheckoutOut)},
        body=views.DecideDisputeIn,
        codes=("not_disputed",),
    ),
    (views.Advance, "POST"): DescribedOperation(
        "sandbox_advance",
        "Let time pass",
        "Lets `seconds` pass for this checkout. All its times, past and due, move that much earlier, "
        "including those of its history, deliveries, pay links and pending refunds. Everything that is then "
        "due happens, also at the bank: for example, a dispute is opened. The contents of events do not "
        "change, and `updated_at` is the current time. Each call makes at most one more attempt per "
        "delivery. If a refund is settled and then returned, the return happens in a later call.",
        {200: DescribedResponse("The checkout after that time.", CheckoutOut)},
        body=views.AdvanceIn,
        codes=("operation_in_progress",),
    ),
}
