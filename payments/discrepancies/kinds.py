"""The table of discrepancy kinds: each kind's name, sentence, instructions, and page in the runbook.

To add a kind, add one entry here, report it, and run `make runbook`. Mails, pages and docs/operate.md show
the texts of this table. Rule money.discrepancy_kinds.
"""

from collections.abc import Mapping

from payments.discrepancies.definitions import GIVE_UP, SEND_AGAIN, SETTLE_OUTSIDE, DiscrepancyKind

UNCLEAR = "no-clear-answer"
IN_DOUBT_FOR_A_DAY = DiscrepancyKind(
    "in_doubt_for_a_day",
    "An operation has had no clear answer for a day",
    "Ask the provider what became of it; the service keeps asking too. Give up an authorization or a capture; send a"
    " refund or a void again. If the operation has ended since, close the discrepancy.",
    UNCLEAR,
    (GIVE_UP, SEND_AGAIN),
)
CAPTURE_PENDING_TOO_LONG = DiscrepancyKind(
    "capture_pending_too_long",
    "The provider accepted a capture and has not confirmed it within ten minutes",
    "Ask the provider what it waits for; the service keeps asking too. If the provider vouches that the capture never"
    " arrived, give it up. If the capture has ended since, close the discrepancy.",
    UNCLEAR,
    (GIVE_UP,),
)
UNREADABLE_ANSWER = DiscrepancyKind(
    "unreadable_answer",
    "The provider gave an answer that makes no sense",
    "The service asks again until it understands the answer. Find the log line “provider said something strange”. If it"
    " comes again, show it to the provider’s support. Then close the discrepancy.",
    UNCLEAR,
)

DIFFERENCES = "provider-differences"
ANOTHER_AMOUNT = DiscrepancyKind(
    "another_amount",
    "The provider reports a different amount",
    "Ask the provider which amount moved, then close the discrepancy with its answer as the note.",
    DIFFERENCES,
)
CAPTURED_ANOTHER_AMOUNT = DiscrepancyKind(
    "captured_another_amount",
    "The provider captured a different amount than the one held",
    "If the capture is recorded, ask the provider which amount it took. Otherwise give up a capture in doubt, and"
    " refund the charge in the provider’s dashboard. Tell the merchant, then close the discrepancy.",
    DIFFERENCES,
)
REFUND_OF_ANOTHER_AMOUNT = DiscrepancyKind(
    "refund_of_another_amount",
    "The provider refunded a different amount than the one recorded",
    "Ask the provider which amount reached the card, then close the discrepancy with its answer as the note.",
    DIFFERENCES,
)
REFUND_AFTER_REFUSAL = DiscrepancyKind(
    "refund_after_refusal",
    "The provider carried out or resumed a refund that it had refused",
    "The service records the refund once it succeeds. Check in the provider’s dashboard whether the card was refunded"
    " twice. If it was, tell the merchant. Then close the discrepancy.",
    DIFFERENCES,
)
ACCOUNT_UNREADABLE = DiscrepancyKind(
    "account_unreadable",
    "The provider does not let the service read a merchant’s account",
    "Wait until the access is back. Then run `manage.py reconcile --since-hours`, and close the discrepancy.",
    DIFFERENCES,
)
MISSING_HERE = DiscrepancyKind(
    "missing_here",
    "The provider reported a payment that is unknown here",
    "Ask the provider who made it, and for whom, then close the discrepancy with its answer as the note.",
    DIFFERENCES,
)
MISSING_THERE = DiscrepancyKind(
    "missing_there",
    "The provider’s books lack a capture or refund that it had confirmed",
    "Ask the provider about it. If it is a capture, tell the merchant not to fulfil the order until the provider has"
    " answered. Close the discrepancy with the answer as the note.",
    DIFFERENCES,
)
SUCCEEDED_UNDER_AN_OLD_KEY = DiscrepancyKind(
    "succeeded_under_an_old_key",
    "An operation was carried out again, or after another one had replaced it",
    "Check in the provider’s dashboard whether it was done twice. If it was, ask the provider to undo one. Then close"
    " the discrepancy.",
    DIFFERENCES,
)

UNWANTED = "unwanted-charges-and-holds"
CAPTURED_AFTER_THE_END = DiscrepancyKind(
    "captured_after_the_end",
    "A card was charged for an order or share that no longer waited for it",
    "Refund the charge in the provider’s dashboard, then close the discrepancy.",
    UNWANTED,
)
VOID_REFUSED = DiscrepancyKind(
    "void_refused",
    "The provider has refused three times to release a hold",
    "Ask the provider why. The service tries again until the hold is eight days old; you can send the release again at"
    " once. This closes automatically when a release succeeds.",
    UNWANTED,
    (SEND_AGAIN,),
)
HOLD_NOT_RELEASED = DiscrepancyKind(
    "hold_not_released",
    "The provider still holds money that it had released",
    "Release the hold in the provider’s dashboard, then close the discrepancy.",
    UNWANTED,
)
HELD_AFTER_REFUSAL = DiscrepancyKind(
    "held_after_refusal",
    "A card is held for a payment that was declined",
    "The service releases the hold. If the provider’s dashboard still has it after an hour, release it there. Then"
    " close the discrepancy.",
    UNWANTED,
)

UNREFUNDED = "refunds-that-do-not-arrive"
RETRIED_HOURLY = "The service tries again each hour for three days."
REFUND_PART_FAILED = DiscrepancyKind(
    "refund_part_failed",
    "A refund did not reach the card",
    f"{RETRIED_HOURLY} If the card can take the money, you can send it again at once. If it cannot, pay"
    " the payer another way, then choose Settled outside.",
    UNREFUNDED,
    (SEND_AGAIN, SETTLE_OUTSIDE),
)
REFUND_RETURNED = DiscrepancyKind(
    "refund_returned",
    "A settled refund came back to the provider",
    "The provider has the money, and the payer does not. If the card can take the money, send it again. If it cannot,"
    " pay the payer another way, then choose Settled outside. This closes automatically when the payer has the money.",
    UNREFUNDED,
    (SEND_AGAIN, SETTLE_OUTSIDE),
)
SHARE_NOT_REIMBURSED = DiscrepancyKind(
    "share_not_reimbursed",
    "A mate’s share did not reach the lead’s card within three days",
    "The service has stopped trying. If the card can take the money, send it again. If it cannot, pay the lead"
    " another way, then choose Settled outside. This closes automatically when the lead has the money.",
    UNREFUNDED,
    (SEND_AGAIN, SETTLE_OUTSIDE),
)
OWED_BEYOND_CARD = DiscrepancyKind(
    "owed_beyond_card",
    "The lead’s card cannot take all that is owed for mates’ shares",
    "The service sends no more than the card has paid. Pay the lead the rest another way, and note it here. Close the"
    " discrepancy when the order is refunded or the lead is owed no more.",
    UNREFUNDED,
)
CARD_GOT_TOO_MUCH = DiscrepancyKind(
    "card_got_too_much",
    "A card got back more than it should",
    "If a refund was booked as settled outside by mistake, take that booking back on its page. Otherwise ask the"
    " provider whether it can undo a refund. What it cannot undo is the merchant’s loss: tell the merchant, then"
    " close the discrepancy.",
    UNREFUNDED,
)

DISPUTES = "disputed-payments"
DISPUTED = DiscrepancyKind(
    "disputed",
    "A payer disputes a charge",
    "The payer’s bank has taken the money back. When the merchant mails evidence, submit it to the provider. Until"
    " the dispute is decided, this order cannot be refunded, and its pay links are paused. This closes automatically"
    " with the decision.",
    DISPUTES,
    (),
)
DISPUTE_LOST = DiscrepancyKind(
    "dispute_lost",
    "A dispute is lost",
    "The merchant bears the loss, and we mail the merchant’s owners. Close the discrepancy.",
    DISPUTES,
)
DISPUTE_STATUS_UNKNOWN = DiscrepancyKind(
    "dispute_status_unknown",
    "The provider gave a dispute a status that is unknown here",
    "The service treats the dispute as open: this order cannot be refunded, and its pay links are paused. Ask the"
    " provider what the status means, and report it to the developers. Then close the discrepancy.",
    DISPUTES,
)
DISPUTE_OF_ANOTHER_AMOUNT = DiscrepancyKind(
    "dispute_of_another_amount",
    "The amount or currency of a dispute does not match its payment",
    "Ask the provider which payment it means. If the currency differs, the ledger does not have the dispute’s money."
    " Close the discrepancy with the answer as the note.",
    DISPUTES,
)
DISPUTED_WHILE_REFUNDING = DiscrepancyKind(
    "disputed_while_refunding",
    "A payer disputed a charge while it was refunded",
    "The payer can get the money twice. Ask the provider to stop the refund or the dispute, then close the"
    " discrepancy.",
    DISPUTES,
)

OUTSIDE = "acts-outside-this-service"
OUTSIDE_CAPTURE = DiscrepancyKind(
    "outside_capture",
    "A capture was made outside this service",
    "Tell the merchant. If the order is still held, the merchant’s capture finds this money. If the order has ended,"
    " refund the charge in the provider’s dashboard. Then close the discrepancy.",
    OUTSIDE,
)
OUTSIDE_VOID = DiscrepancyKind(
    "outside_void",
    "A hold was released outside this service",
    "Tell the merchant that this hold cannot be captured any more, then close the discrepancy.",
    OUTSIDE,
)
OUTSIDE_REFUND_FAILED = DiscrepancyKind(
    "outside_refund_failed",
    "A refund that was made outside this service failed",
    "The provider has the money, and the payer does not. Tell the merchant. If the payer is to have the money, refund"
    " it again in the provider’s dashboard. Then close the discrepancy.",
    OUTSIDE,
)

RESTORED = "lost-in-a-restore"
UNKNOWN_ORDER = DiscrepancyKind(
    "unknown_order",
    "A card was charged for an order that was lost in a restore",
    "Find the order at the merchant by amount and time. The merchant fulfils it, or you refund the charge in the"
    " provider’s dashboard. Then close the discrepancy.",
    RESTORED,
)
RESTORED_REFUND = DiscrepancyKind(
    "restored_refund",
    "A refund was lost in a restore and is recorded as made by others",
    "Ask the merchant whether the refund was intended, then close the discrepancy with the answer as the note.",
    RESTORED,
)
NOT_REPAIRED = DiscrepancyKind(
    "not_repaired",
    "The repair after a restore could not record a payment",
    "Find the cause in the log line “payment not repaired”. If the service is open, do not refund the order. When"
    " the payment is recorded, this closes automatically. If the provider will never show it, close the discrepancy.",
    RESTORED,
)

NOTIFICATIONS = "provider-notifications"
FORGED_NOTIFICATION = DiscrepancyKind(
    "forged_notification",
    "A notification had a wrong signature",
    "Compare the provider’s signing secret with the service’s. If they are the same, someone else sent the"
    " notification: close the discrepancy.",
    NOTIFICATIONS,
)
UNREADABLE_NOTIFICATION = DiscrepancyKind(
    "unreadable_notification",
    "A notification could not be read",
    "Find the log line “unreadable notification”, which names the error. If it comes again, the adapter does not know"
    " this message of the provider: report it to the developers. Then close the discrepancy.",
    NOTIFICATIONS,
)

TEXTS = "budgets-of-texts"
SMS_BUDGET_OF_MERCHANT = DiscrepancyKind(
    "sms_budget_of_merchant",
    "A merchant has used most of its daily budget of texts",
    "A text counts until its order or share is paid. Look under Texts to see who requests them. If someone misuses"
    " the merchant’s pages, suspend the merchant. Then close the discrepancy.",
    TEXTS,
)
SMS_BUDGET_OF_ALL = DiscrepancyKind(
    "sms_budget_of_all",
    "All merchants together have used most of the daily budget of texts",
    "A text counts until its order or share is paid. Look under Texts to see which merchants they are for. If someone"
    " misuses a merchant’s pages, suspend the merchant. Then close the discrepancy.",
    TEXTS,
)

PAYMENT_PAGE = "changed-payment-page"
CARD_PAGE_CHANGED = DiscrepancyKind(
    "card_page_changed",
    "Browsers get another payment page than this release delivers",
    "The facts name each difference. Compare proxies, content network and servers with the release. Stop all payments"
    " until you know the cause. Then close the discrepancy.",
    PAYMENT_PAGE,
)
CARD_PAGE_UNCHECKED = DiscrepancyKind(
    "card_page_unchecked",
    "The payment page could not be checked",
    "Run `manage.py check_card_page` again. This closes automatically after a check with all answers.",
    PAYMENT_PAGE,
    (),
)

_breach = DiscrepancyKind.of_ledger
LEDGER_UNBALANCED = _breach("unbalanced", "A transaction of the ledger does not sum to zero")
LEDGER_CAPTURE_AND_STATUS = _breach(
    "capture_and_status",
    "An order is captured but does not have one capture of its amount, or it has one but is not captured",
)
LEDGER_PAYMENT_NOT_LIVE = _breach(
    "payment_not_live", "An order’s payment was given up, or is not captured although the order is"
)
LEDGER_SHARE_NOT_LIVE = _breach("share_not_live", "A paid share’s payment was given up or is not captured")
LEDGER_TWO_CAPTURES = _breach("two_captures", "One order or share was captured twice")
LEDGER_LATE_CAPTURE = _breach("late_capture", "A capture was begun after the deadline of its hold")
LEDGER_NOT_RECORDED = _breach(
    "not_recorded",
    "A capture or refund that succeeded has no movement of its amount, or one that did not succeed has a movement",
)
LEDGER_NOT_POSTED = _breach(
    "not_posted", "A movement or booking is missing in the ledger, or it has a different amount there"
)
LEDGER_WITHOUT_MOVEMENT = _breach(
    "without_movement", "The ledger has money that belongs to no movement and no booking"
)
LEDGER_CARD_GOT_TOO_MUCH = _breach(
    "card_got_too_much",
    "A card has got back more than it paid, not counting disputes and refunds made in the provider’s dashboard",
)
LEDGER_CARD_STILL_BEARS = _breach(
    "card_still_bears", "A card of a refunded order is not refunded in full, and no open discrepancy says so"
)
LEDGER_REFUNDED_WHILE_CAPTURED = _breach(
    "refunded_while_captured",
    "A captured order has a settled part of a refund, or the lead has got more than a share’s amount for it",
)
LEDGER_WRONG_CARD = _breach("wrong_card", "A reimbursement is for another card than the lead’s")
LEDGER_SHARE_NOT_PLANNED = _breach(
    "share_not_planned",
    "A paid share is not on its way to the lead, and no dispute or open discrepancy says why",
)
LEDGER_REFUND_NOT_PLANNED = _breach(
    "refund_not_planned",
    "A refund has no part to send, and it waits for no card, dispute or open discrepancy",
)
LEDGER_AGAINST_BALANCE = _breach(
    "against_balance", "The provider’s balance has a different amount for a capture or refund"
)
LEDGER_OWED_TO_LEAD = _breach(
    "owed_to_lead", "The lead has got more than mates have paid, or is still owed money for a refunded order"
)
LEDGER_SHARE_AND_STATUS = _breach(
    "share_and_status",
    "A share is paid but does not have one capture of its amount, or it has one but is not paid",
)
LEDGER_MOVED_WITHOUT_CAPTURE = _breach(
    "moved_without_capture", "A voided, expired or unpaid order has moved money"
)
LEDGER_REFUND_AND_STATUS = _breach(
    "refund_and_status",
    "An order is refunded but has no settled refund of its amount, or it has one but is not refunded",
)
LEDGER_FORGOTTEN_HOLD = _breach(
    "forgotten_hold", "No order needs the hold, and it is not being released or captured"
)
LEDGER_PLEDGE = _breach(
    "pledge", "A share is pledged, but its order does not wait for a payment, or no card is held for it"
)
LEDGER_AUTHORIZED_EVENT = _breach(
    "authorized_event", "A hold has no event that announces it, or an order has such an event but no hold"
)
LEDGER_VOIDED_EVENT = _breach(
    "voided_event",
    "The end of a hold has no event that announces it, or an order has such an event although no hold ended",
)
LEDGER_MERCHANT_MISSING = _breach(
    "merchant_missing", "An event, API call, order, payment or posting belongs to no merchant"
)
LEDGER_EVENT_MISSING = _breach(
    "event_missing", "A delivery has no event, or its event has another merchant or type"
)
LEDGER_SUBSCRIPTION_MISSING = _breach("subscription_missing", "A delivery has no subscription")
LEDGER_DELIVERED_TWICE = _breach("delivered_twice", "An event is delivered twice to one subscription")
LEDGER_DELIVERY_MISSING = _breach(
    "delivery_missing", "An attempt has no delivery, or its delivery has another merchant or type"
)
LEDGER_SUMS = _breach("sums", "The stored sums of closed days and months differ from their postings")

EARLIER = "kinds-of-an-earlier-release"
TABLE: Mapping[str, DiscrepancyKind] = {
    found.name: found for found in tuple(globals().values()) if isinstance(found, DiscrepancyKind)
}


def kind_named(name: str) -> DiscrepancyKind:
    """Return the kind with this name.

    If the name is no longer in the table, return a generic kind whose sentence is made from the name.
    """
    what_to_do = (
        "This release does not report it. Compare the facts with the provider’s dashboard, then close the"
        " discrepancy."
    )
    old = DiscrepancyKind(name, name.replace("_", " ").capitalize(), what_to_do, EARLIER)
    return TABLE.get(name, old)
