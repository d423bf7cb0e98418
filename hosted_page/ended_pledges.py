"""Writes the notices for a mate and the lead after a pledge has ended.

A notice gives the reason, and says that the hold is released. Rules pledge.ends, pledge.withdraw, pledge.captured,
pledge.split_changes.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from babel.lists import format_list
from django.utils.translation import get_language, ngettext, to_locale
from django.utils.translation import gettext as _

from checkout import pledges
from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus
from hosted_page import summary
from hosted_page.group import group_members
from hosted_page.payment_target import lead_name
from payments import money
from payments.models import Payment

CHANGED = "changed"  # query parameter of the lead's page, set after a new split has ended pledges


def words_of(checkout: Checkout, share: PaymentRequest, hold: Payment) -> dict[str, str]:
    """Return the title and the text of the notice for a mate whose hold for a share (`hold`) has ended."""
    if hold.decline_reason == pledges.NOT_TAKEN:
        return words_of_failure(checkout, hold, advice=_("Try again, or use another card."))
    released = _("You have not been charged. The hold of {amount} on your card is released.").format(
        amount=money.display_for_payer(hold.amount, checkout.currency)
    )
    if hold.decline_reason == pledges.WITHDRAWN:
        return {"title": _("You have withdrawn"), "words": released}
    if hold.decline_reason == pledges.SHOP_STOPPED:
        return {"title": _("You are no longer in"), "words": f"{_stop_sentence(checkout)} {released}"}
    if hold.decline_reason == pledges.ANOTHER_CARD:
        return {"title": _("Choose another card"), "words": released}
    if hold.decline_reason == pledges.SAME_CARD:
        title = _("{name} paid with the same card").format(name=lead_name(checkout))
        another = _("Use another card for your share.")
        return {"title": title, "words": f"{released} {another}"}
    return _words_of_lead(checkout, share, hold, released)


def _stop_sentence(checkout: Checkout) -> str:
    return _("{shop} could not take payments for a while.").format(shop=checkout.merchant.name)


def words_of_failure(checkout: Checkout, hold: Payment, *, advice: str) -> dict[str, str]:
    """Return the title and the text of the notice for a mate whose `hold` could not be captured."""
    reason = _("Your share of {amount} could not be taken from {card}, and the hold is released.").format(
        amount=money.display_for_payer(hold.amount, checkout.currency),
        card=summary.card_in_words(hold, is_owner=True),
    )
    return {"title": _("You have not been charged"), "words": f"{reason} {advice}".strip()}


def _words_of_lead(checkout: Checkout, share: PaymentRequest, hold: Payment, released: str) -> dict[str, str]:
    """Return the title and the text of the notice for a pledge that was ended by the lead or by an operator's stop."""
    held_amount, share_amount = (
        money.display_for_payer(amount, checkout.currency) for amount in (hold.amount, share.amount)
    )
    no_longer_in = _("You are no longer in.")
    if share.replaced_at is not None:
        title = _("{name} changed the split").format(name=lead_name(checkout))
        again = _("If you are still in, take your share again.")
        return {"title": title, "words": f"{no_longer_in} {released} {again}"}
    if held_amount == share_amount:
        return {"title": _("You are no longer in"), "words": released}
    title = _("{name} changed your share").format(name=lead_name(checkout))
    changed = _("It was {was} and is now {now}.").format(was=held_amount, now=share_amount)
    return {"title": title, "words": f"{changed} {no_longer_in} {released}"}


def shares_not_taken(shares: Sequence[PaymentRequest]) -> set[UUID]:
    """Return the ids of the open shares whose pledges could not be captured.

    A share that was claimed after the pledge does not count, because another person might be paying it.
    """
    tried = {share.pk: share for share in shares if share.status == ShareStatus.OPEN and share.mate_id}
    return {hold.subject for hold in _last_payments(tried) if _was_not_taken(tried[hold.subject], hold)}


def _was_not_taken(share: PaymentRequest, hold: Payment) -> bool:
    is_claimed_since = share.claimed_at is not None and share.claimed_at > hold.created_at
    return hold.decline_reason == pledges.NOT_TAKEN and not is_claimed_since


def shares_without_hold(checkout: Checkout, since: datetime | None = None) -> list[PaymentRequest]:
    """Return the shares whose pledges were ended by the last change to the split.

    Shares of mates who have pledged again are left out. If the change was before `since`, the list is empty.
    """
    shares = list(PaymentRequest.every.filter(checkout=checkout, mate__isnull=False).order_by("position"))
    holds = Payment.objects.filter(subject__in=[share.pk for share in shares]).order_by("created_at")
    last = {hold.subject: hold for hold in holds}
    ended = {
        share: last[share.pk].abandoned_at
        for share in shares
        if share.pk in last and _is_ended_by_split(share, last[share.pk])
    }
    times = [at for at in ended.values() if at is not None and (since is None or at >= since)]
    are_in = {share.mate_id for share in shares if share.status in (ShareStatus.PLEDGED, ShareStatus.PAYING)}
    return [
        share for share, at in ended.items() if times and at == max(times) and share.mate_id not in are_in
    ]


def _is_ended_by_split(share: PaymentRequest, hold: Payment) -> bool:
    is_released = hold.status != Payment.Status.DECLINED and hold.decline_reason == pledges.NOT_PLEDGED
    return is_released and (share.replaced_at is not None or share.status == ShareStatus.OPEN)


def notice_for_lead(checkout: Checkout, *, has_link: bool = True) -> dict[str, str] | None:
    """Return the notice for a lead whose new split has ended pledges.

    Return None if all these mates have pledged again. The notice says which holds are released, and whether
    the mates can take a share of the new split. If the page shows the link (`has_link`), the notice asks the
    lead to send it again.
    """
    shares = shares_without_hold(checkout)
    open_shares = checkout.payment_requests.filter(status=ShareStatus.OPEN)
    is_any_free = any(not share.is_addressed for share in open_shares)
    asked = [share for share in shares if share.replaced_at is None or is_any_free]
    sentences = [
        _asked_again_sentence(asked),
        _released_sentence([share for share in shares if share not in asked]),
        _("Please send the link again.") if asked and has_link else "",
    ]
    words = " ".join(sentence for sentence in sentences if sentence)
    return {"title": _("You changed the split"), "words": words} if words else None


def notice_of_stop(checkout: Checkout, shares: Sequence[PaymentRequest]) -> dict[str, str] | None:
    """Return the notice for a lead about pledges that a stop of the shop has ended, or None if it ended no pledge."""
    tried = {share.pk: share for share in shares if share.status == ShareStatus.OPEN and share.mate_id}
    ended = [
        tried[hold.subject] for hold in _last_payments(tried) if hold.decline_reason == pledges.SHOP_STOPPED
    ]
    if not ended:
        return None
    sentences = (_stop_sentence(checkout), _released_sentence(ended), _("Please send the link again."))
    return {"title": _("Ask your mates again"), "words": " ".join(sentences)}


def _last_payments(shares: Collection[UUID]) -> list[Payment]:
    if not shares:
        return []
    return list(
        Payment.objects.filter(subject__in=shares).order_by("subject", "-created_at").distinct("subject")
    )


def _asked_again_sentence(shares: Sequence[PaymentRequest]) -> str:
    """Return the sentence about mates who can take a share of the new split, or "" if there are no such mates."""
    if not shares:
        return ""
    words = ngettext(
        "The hold on {names}’s card is released. They can take the new share with the same link.",
        "The holds on the cards of {names} are released. They can take their new shares with the same link.",
        len(shares),
    )
    return words.format(names=_list_names(shares))


def _released_sentence(shares: Sequence[PaymentRequest]) -> str:
    """Return the sentence about mates who cannot take a share of the new split, or "" if there are no such mates."""
    if not shares:
        return ""
    words = ngettext(
        "The hold on {names}’s card is released.",
        "The holds on the cards of {names} are released.",
        len(shares),
    )
    return words.format(names=_list_names(shares))


def _list_names(shares: Sequence[PaymentRequest]) -> str:
    names = [share.shown_name or group_members.share_name(share) for share in shares]
    return format_list(names, locale=to_locale(get_language() or "en"))
