"""Recipes. In the sandbox, they produce the situations that a finished integration must handle.

Tests run each recipe. A recipe starts with a new checkout. The `facts` of a step map paths in its answer to
the values that they must have. Rule docs.recipes.
"""

from typing import Any, NamedTuple

from portal.developer_docs import page_text

_ORDER = "/api/merchant/v1/checkouts/{checkout_uuid}"
_HELPER = "/api/sandbox/v1/checkouts/{checkout_uuid}"
_WEBHOOKS = "/api/merchant/v1/webhooks"


class Call(NamedTuple):
    """An API call that recipes name by one word. `anchor` is the call's anchor on the documentation page."""

    method: str
    path: str
    anchor: str


CALLS = {
    "read": Call("GET", _ORDER, "read_checkout"),
    "capture": Call("POST", f"{_ORDER}/capture", "capture_checkout"),
    "cancel": Call("POST", f"{_ORDER}/cancel", "cancel_checkout"),
    "refund": Call("POST", f"{_ORDER}/refund", "refund_checkout"),
    "pay": Call("POST", f"{_HELPER}/pay", "sandbox_pay"),
    "pay-share": Call("POST", f"{_HELPER}/pay-share", "sandbox_pay_share"),
    "decide-dispute": Call("POST", f"{_HELPER}/decide-dispute", "sandbox_decide_dispute"),
    "advance": Call("POST", f"{_HELPER}/advance", "sandbox_advance"),
    "opt-in": Call("POST", f"{_HELPER}/opt-in", "sandbox_opt_in"),
    "deliveries": Call("GET", f"{_WEBHOOKS}/deliveries", "list_delivery_attempts"),
    "events": Call("GET", "/api/merchant/v1/events?checkout_uuid={checkout_uuid}", "list_events"),
    "rotate": Call("POST", f"{_WEBHOOKS}/secret/rotate", "rotate_signing_secret"),
}


class Step(NamedTuple):
    """A call and its expected answer. If a step `waits`, it is repeated until it gets this answer."""

    call: str
    status: int
    facts: dict[str, Any]
    body: dict[str, Any] | None = None
    waits: bool = False

    @property
    def anchor(self) -> str:
        """Return the call's anchor on the documentation page."""
        return CALLS[self.call].anchor

    @property
    def body_text(self) -> str:
        """Return the request's body as JSON, or "" if there is none."""
        return page_text.to_json_line(self.body) if self.body else ""

    @property
    def expected_text(self) -> str:
        """Return the expected facts as text."""
        return ", ".join(f"{name} {page_text.to_json_line(value)}" for name, value in self.facts.items())


class Recipe(NamedTuple):
    """A situation, the reason why it matters, and the steps.

    `card` is the test card that causes the situation, or "" if the situation does not depend on the card.
    """

    anchor: str
    title: str
    text: str
    steps: tuple[Step, ...]
    card: str = ""


def _pay_step(card: str = "", **more: Any) -> Step:
    return Step("pay", 200, {"status": "authorized"}, ({"card": card} if card else {}) | more)


_CAPTURE = Step("capture", 200, {"status": "captured"})
_REFUND = Step("refund", 204, {}, {"merchant_refund_ref": "R-1"})
_REFUSED_REFUND = Step("refund", 409, {"code": "not_refundable"}, {"merchant_refund_ref": "R-1"})
_DISPUTED = (
    _pay_step("4000000000000259"),
    _CAPTURE,
    Step("read", 200, {"status": "captured", "disputes[0].status": "open"}, waits=True),
)

RECIPES = (
    Recipe(
        "recipe-paid",
        "A payment",
        "Most orders go this way. Two other approved cards are 5555555555554444 and 378282246310005.",
        (_pay_step("4242424242424242"), _CAPTURE, _CAPTURE),
        "4242424242424242",
    ),
    Recipe(
        "recipe-declined",
        "A declined card, then another one",
        "No money has moved, no event is sent, and the customer can try another card.",
        (
            Step(
                "pay",
                402,
                {"code": "card_declined", "details[0].reason": "declined"},
                {"card": "4000000000000002"},
            ),
            _pay_step(),
        ),
        "4000000000000002",
    ),
    Recipe(
        "recipe-insufficient-funds",
        "Insufficient funds",
        "The customer sees the reason on the hosted page. Your server gets no event.",
        (Step("pay", 402, {"details[0].reason": "insufficient_funds"}, {"card": "4000000000009995"}),),
        "4000000000009995",
    ),
    Recipe(
        "recipe-expired-card",
        "An expired card",
        "Declined, like the two cards before it.",
        (Step("pay", 402, {"details[0].reason": "expired_card"}, {"card": "4000000000000069"}),),
        "4000000000000069",
    ),
    Recipe(
        "recipe-3-d-secure",
        "3-D Secure, failed and passed",
        "The bank asks the customer first. A challenge passes unless the call says that it fails.",
        (
            Step("pay", 402, {"code": "card_declined"}, {"card": "4000002500003155", "challenge": "fail"}),
            _pay_step("4000002500003155"),
        ),
        "4000002500003155",
    ),
    Recipe(
        "recipe-lapse",
        "A lapse: no capture within two minutes",
        "checkout.voided arrives with the reason auth_expired, dated at the deadline. Don’t fulfil the "
        "order.",
        (
            _pay_step(),
            Step("advance", 200, {"status": "voided", "void_reason": "auth_expired"}, {"seconds": 121}),
            Step("capture", 409, {"code": "not_capturable"}),
        ),
    ),
    Recipe(
        "recipe-cancel",
        "Cancelling a held checkout",
        "Sold out in the meantime? checkout.voided arrives with the reason merchant_cancel.",
        (_pay_step(), Step("cancel", 200, {"status": "voided", "void_reason": "merchant_cancel"})),
    ),
    Recipe(
        "recipe-expiry",
        "No one pays",
        "After an hour, the order can no longer be paid. No event reports this, because no card was held.",
        (
            Step("advance", 200, {"status": "expired"}, {"seconds": 3601}),
            Step("pay", 409, {"code": "not_payable"}),
        ),
    ),
    Recipe(
        "recipe-refund",
        "A refund, requested twice",
        "The same merchant_refund_ref is the same refund. Read the order until it is refunded.",
        (
            _pay_step(),
            _CAPTURE,
            _REFUND,
            Step("refund", 200, {"merchant_refund_ref": "R-1"}, {"merchant_refund_ref": "R-1"}),
            Step("read", 200, {"status": "refunded", "refunded_amount": 2250}, waits=True),
        ),
    ),
    Recipe(
        "recipe-refund-fails",
        "A refund that fails",
        "The order is captured again, and you can try again with a new merchant_refund_ref.",
        (
            _pay_step("4000000000005126"),
            _CAPTURE,
            _REFUND,
            Step("read", 200, {"status": "captured", "refunds[0].status": "failed"}, waits=True),
            Step("refund", 204, {}, {"merchant_refund_ref": "R-2"}),
        ),
        "4000000000005126",
    ),
    Recipe(
        "recipe-refund-returns",
        "A refund that is settled and fails afterwards",
        "The order stays refunded, and its refund reads failed. Our operators take care of it.",
        (
            _pay_step("4000000000007726"),
            _CAPTURE,
            _REFUND,
            Step("read", 200, {"status": "refunded", "refunds[0].status": "failed"}, waits=True),
        ),
        "4000000000007726",
    ),
    Recipe(
        "recipe-lost-answer",
        "A capture whose answer is lost",
        "The money has moved, but you got no answer. Repeat the capture: it takes the money only once.",
        (
            _pay_step("4000000000006975"),
            Step("capture", 504, {"code": "outcome_unknown"}),
            Step("capture", 200, {"status": "captured"}, waits=True),
        ),
        "4000000000006975",
    ),
    Recipe(
        "recipe-asynchronous-capture",
        "An asynchronous capture",
        "The bank accepts it and confirms it three seconds later. Your call waits for that, at most eight "
        "seconds.",
        (_pay_step("4000000000000077"), _CAPTURE),
        "4000000000000077",
    ),
    Recipe(
        "recipe-no-capture",
        "A capture that never arrives",
        "The outcome is unknown until the hold ends. Then it is certain that no money was taken. Don’t "
        "fulfil on a guess: read the order.",
        (
            _pay_step("4000000000006983"),
            Step("capture", 504, {"code": "outcome_unknown"}),
            Step("capture", 409, {"code": "operation_in_progress"}),
            Step("read", 200, {"status": "authorized", "pending_operation": "capture"}),
        ),
        "4000000000006983",
    ),
    Recipe(
        "recipe-slow-bank",
        "A slow bank",
        "Each call takes two seconds. Does your webhook still answer within fifteen seconds?",
        (_pay_step("4000000000000341"), _CAPTURE),
        "4000000000000341",
    ),
    Recipe(
        "recipe-slow-release",
        "A release that the bank fails ten times",
        "The order is voided at once for you and the customer. The service repeats the release until it "
        "succeeds.",
        (_pay_step("4000000000008013"), Step("cancel", 200, {"status": "voided"})),
        "4000000000008013",
    ),
    Recipe(
        "recipe-dispute",
        "A dispute that you win",
        "Two seconds after the capture, the customer asks their bank for the money back. Until the bank has "
        "decided, a refund would pay the customer twice. You then have the money again, and can refund it.",
        (
            *_DISPUTED,
            _REFUSED_REFUND,
            Step("decide-dispute", 200, {"disputes[0].status": "won"}, {"result": "won"}),
            _REFUND,
        ),
        "4000000000000259",
    ),
    Recipe(
        "recipe-dispute-lost",
        "A dispute that you lose",
        "The customer keeps the money. The order stays captured, and nothing is left to refund.",
        (
            *_DISPUTED,
            Step("decide-dispute", 200, {"disputes[0].status": "lost"}, {"result": "lost"}),
            _REFUSED_REFUND,
        ),
    ),
    Recipe(
        "recipe-split",
        "A split cost",
        "You capture the whole amount as usual. The mate’s payment goes to the lead’s card, not to you.",
        (
            _pay_step(shares=[{"name": "Finn", "amount": 750}]),
            _CAPTURE,
            Step("read", 200, {"shares.count": 1, "shares.paid_count": 0}),
            Step("pay-share", 200, {"status": "paid"}),
            Step("read", 200, {"status": "captured", "shares.paid_count": 1, "shares.paid_amount": 750}),
        ),
    ),
    Recipe(
        "recipe-rotation",
        "A rotation of the signing secret",
        "First register an endpoint. The next deliveries carry two v1, then three. A receiver accepts them "
        "with either secret.",
        (
            Step("rotate", 200, {}),
            _pay_step(),
            Step("rotate", 200, {}),
            Step("rotate", 409, {"code": "rotation_in_progress"}),
            Step("rotate", 200, {"previous_secret_expires_at": None}, {"revoke_previous": True}),
        ),
    ),
    Recipe(
        "recipe-endpoint-down",
        "An endpoint that is down",
        "First register an endpoint. If it answers 500, attempts follow after about 5, 25 and 75 seconds. If "
        "it answers 400, there is no second attempt. Then send the event again from the portal.",
        (_pay_step(), Step("deliveries", 200, {"deliveries[0].status": "failed"}, waits=True)),
    ),
    Recipe(
        "recipe-feeds",
        "A change in the feeds, in CI",
        "The feeds lag by about a second, and a page can be empty. Repeat the request until the entry is listed, "
        "for at most 10 seconds. Here, events is the feed of events with this checkout’s checkout_uuid.",
        (
            _pay_step(),
            Step("events", 200, {"events[0].event.type": "checkout.authorized"}, waits=True),
            Step("cancel", 200, {"status": "voided"}),
            Step("events", 200, {"events[1].event.type": "checkout.voided"}, waits=True),
        ),
    ),
    Recipe(
        "recipe-opt-in",
        "A tick of the marketing box",
        "If opt-in is enabled, marketing.opted_in is sent for every tick.",
        (Step("opt-in", 200, {}, {"email": "lea@example.com"}),),
    ),
)
RECIPE_BY_CARD = {recipe.card: recipe for recipe in RECIPES if recipe.card}
