"""Builds the page around the provider's card fields: the order, the held amounts, and the last card's decline."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from checkout import pledges
from checkout.models import Checkout, Customer, PaymentRequest
from checkout.states import SHARE_OUTSTANDING, ShareStatus
from config.lib import clock
from hosted_page import ended_pledges, language, summary
from hosted_page.payment_target import PaymentTarget, lead_name
from hosted_page.steps import declines, share_step
from payments import money
from payments.models import Payment

# The reasons for declines, as texts for the payer.
DECLINES = {
    "insufficient_funds": gettext_lazy("There is not enough money on this card."),
    "expired_card": gettext_lazy("This card has expired."),
    "challenge_failed": gettext_lazy("You did not confirm this payment with your bank."),
    "challenge_expired": gettext_lazy("You did not answer your bank in time."),
    "never_arrived": gettext_lazy("Your bank did not answer."),
    "same_card": gettext_lazy("This card has already paid the whole order."),
    "held_for_less": gettext_lazy("Your bank would only hold part of the amount."),
}
DECLINED = gettext_lazy("Your bank declined this card.")


def page_context(target: PaymentTarget, person: Customer | None = None) -> dict[str, Any]:
    """Return the context around the fields of the provider's card page. `person` is the payer."""
    amount = money.display_for_payer(target.amount, target.checkout.currency)
    is_lead = target.share is None
    return {
        "order": asdict(summary.summary_of(target)),
        "is_share": not is_lead,
        "lead": "" if is_lead else lead_name(target.checkout),
        "cancel_url_path": target.address("cancel") if is_lead else "",
        "change_split_url": target.address("split") if is_lead else "",
        **share_step.decline_context(target),
        "pay_label": (_("I’m in for {amount}") if target.is_pledge else _("Pay {amount}")).format(
            amount=amount
        ),
        "pledge": share_step.pledge_context(target),
        **_split_context(target, amount),
        "language": get_language(),  # language of this page, and of the provider's texts on it
        "languages": language.other_languages(),
        "merchant_uuid": str(
            target.checkout.merchant_id
        ),  # for the sandbox's page, which must end if the shop is stopped
        "here": target.address("card"),  # after a change of language, the whole page is loaded again
        **dict.fromkeys(("stay", "leave")),  # defaults if no one is signed in in this browser
        "notice": _decline_notice(target, person),
        "leads_to": [target.checkout.cancel_url, settings.CHECKOUT_PAGE_URL],
    }


def _split_context(target: PaymentTarget, amount: str) -> dict[str, Any]:
    """Return how much of a split order the lead's card bears, and whether mates can already pledge."""
    checkout = target.checkout
    if target.share is not None or not checkout.has_mates:
        return {"held_rows": [], "held_note": "", "is_collecting": False}
    shares = list(checkout.payment_requests.filter(status__in=SHARE_OUTSTANDING))
    return {
        "held_rows": _held_rows(checkout, shares, amount),
        "held_note": _held_note(checkout),
        "is_collecting": any(share.status != ShareStatus.DRAFT for share in shares),
    }


def _held_rows(checkout: Checkout, shares: Sequence[PaymentRequest], amount: str) -> list[dict[str, str]]:
    now = clock.now()
    held = [share.amount for share in shares if share.status == ShareStatus.PLEDGED]
    due = [share.amount for share in shares if share.status != ShareStatus.PLEDGED]
    label = _("Goes back when your mate pays") if len(due) == 1 else _("Goes back as your {count} mates pay")
    if any(share.has_free_units(now) for share in shares):  # it is not known how many mates will take them
        label = _("Goes back as your mates pay")
    own = checkout.amount - sum(held) - sum(due)
    return [
        {"label": _("Held on your card today"), "amount": amount},
        *_amount_rows(
            _("Goes back once {shop} confirms").format(shop=checkout.merchant.name), held, checkout
        ),
        *_amount_rows(label.format(count=len(due)), due, checkout),
        {"label": _("Your own share"), "amount": money.display_for_payer(own, checkout.currency)},
    ]


def _held_note(checkout: Checkout) -> str:
    """Return the sentence that says which amount the lead bears if a mate does not pay."""
    if checkout.payment_requests.filter(status__in=(ShareStatus.DRAFT, ShareStatus.OPEN)).exists():
        return _("If a mate never pays, you cover their share.")
    return _(
        "In the rare case that a bank takes a hold back, you cover that share until your mate pays another way."
    )


def _amount_rows(label: str, amounts: list[int], checkout: Checkout) -> list[dict[str, str]]:
    """Return a row with the sum of these amounts, or no row if there are no amounts."""
    return (
        [{"label": label, "amount": money.display_for_payer(sum(amounts), checkout.currency)}]
        if amounts
        else []
    )


def _decline_notice(target: PaymentTarget, person: Customer | None = None) -> dict[str, str] | None:
    """Return the notice about the last card, if it was declined or its hold was released.

    For a pledge, the notice does not show why the card was declined. It shows the card's digits only if the
    payer (`person`) is the person who used the card.
    """
    last = Payment.objects.filter(subject=target.subject).order_by("-created_at").first()
    hold = pledges.ended_hold(target.share, person.pk) if target.share and person else None
    if target.share and hold is not None and target.is_pledge:
        texts = ended_pledges.words_of(target.checkout, target.share, hold)
        return {"tone": "move", "icon": "edit", "title": texts["title"], "card": "", "text": texts["words"]}
    if last is not None and last.decline_reason == pledges.NOT_TAKEN:
        return _not_taken_notice(target, last, person)
    if last is None or not last.decline_reason or last.decline_reason in declines.HIDDEN_REASONS:
        return None
    advice = (
        _("Try again, or use another card.")
        if last.decline_reason in declines.RETRIABLE_REASONS
        else _("Try another card.")
    )
    title = DECLINED if target.is_pledge else DECLINES.get(last.decline_reason, DECLINED)
    assurance = _("No money was taken.")
    is_theirs = person is not None and bool(last.card_last4) and declines.was_tried_by(person, last)
    card = summary.card_name(last) if is_theirs else ""
    return {"title": str(title), "card": card, "text": f"{assurance} {advice}"}


def _not_taken_notice(target: PaymentTarget, last: Payment, person: Customer | None) -> dict[str, str] | None:
    """Return the notice for a mate whose hold could not be captured, or None for anyone else."""
    share = target.share
    if share is None or person is None or share.mate_id != person.pk:
        return None
    texts = ended_pledges.words_of(target.checkout, share, last)
    return {"title": texts["title"], "card": "", "text": texts["words"], "is_covered": "1"}
