"""The rules of docs/money.md in the model: who gets each share, the target of each card, and `settle`."""

from tests.model.books import (
    KNOWN,
    LEAD,
    NOT_FAILED,
    OPEN,
    Break,
    Card,
    Refund,
    Scope,
    State,
    sum_cards,
    sum_reimbursed,
)

FAILED_IN_VAIN = "The refund reads failed, but no card is owed anything"
Wanted = dict[tuple[int, int, int], int]  # amounts by (card, share, number of the merchant's refund)


def settle(scope: Scope, state: State) -> State:
    """Withdraw planned refunds, end the merchant's refund if possible, and plan the refunds that cards are owed."""
    state = state._replace(refunds=tuple(row for row in state.refunds if row.known != "planned"))
    if is_disputed(state) and scope.without != Break.OPEN_DISPUTE:
        return state
    known = sum_cards(scope, state, KNOWN)
    state = _end_refund(scope, state, known)
    wanted = find_wanted(scope, state, known)
    planned = tuple(
        Refund(card, amount, share, part, True, "planned", "")
        for (card, share, part), amount in wanted.items()
        if _is_automatic(scope, state, card, share)
    )
    closed = _close_shares(scope, state, known, wanted)
    return state._replace(refunds=state.refunds + planned, closed=closed)


def is_disputed(state: State) -> bool:
    """Return whether our database has an open dispute on any card of the order."""
    return any(dispute.known in OPEN for dispute in state.disputes)


def _end_refund(scope: Scope, state: State, known: list[Card]) -> State:
    """If the merchant's refund can end, move the order from refunding to refunded or captured.

    The order becomes refunded if no amount is still charged to any card. It becomes captured if every part
    that is owed has failed and no part has settled.
    """
    is_moving = any(card.moving for card in known) or any(share.known == "paying" for share in state.shares)
    if state.status != "refunding" or is_moving:
        return state
    owed = {index for index, card in enumerate(known) if card.borne > 0}
    failed = {row.card for row in find_parts(state) if row.known == "failed"}
    has_failed = bool(failed) and failed >= owed and not _has_settled(scope, state)
    if not owed and not (has_failed and scope.without == Break.FAILED_FIRST):
        return state._replace(status="refunded")
    if has_failed:
        return state._replace(status="captured", fault="" if owed else FAILED_IN_VAIN)
    return state


def find_parts(state: State) -> list[Refund]:
    """Return those parts of the merchant's last refund that were sent."""
    return [row for row in state.refunds if row.part == state.part and row.part and row.known != "planned"]


def _has_settled(scope: Scope, state: State) -> bool:
    """Return whether a part of the merchant's refund has settled, at the provider or outside the service.

    A part that was returned later counts too.
    """
    is_outside = (
        any(row.part == state.part for row in state.outside) and scope.without != Break.OUTSIDE_IGNORED
    )
    return is_outside or any(row.known in ("settled", "returned") for row in find_parts(state))


def find_fates(scope: Scope, state: State, known: list[Card]) -> list[str]:
    """For each share, return who gets its money: lead, mate, lost (a dispute took it) or unpaid.

    If the lead's card cannot take the whole reimbursement, the mate gets the share back.
    """
    sent = [sum_reimbursed(state, share) for share in range(1, len(known))]
    room = scope.amount - known[LEAD].others
    room -= sum(amount for amount, is_sent in zip(scope.shares, sent, strict=True) if is_sent)
    fates = []
    for share, amount in enumerate(scope.shares, start=1):
        fate = _find_fate(scope, state, known[share], share, sent[share - 1])
        if fate == "due":
            fate = "lead" if amount <= room or scope.without == Break.NO_ROOM else "mate"
            room -= amount if fate == "lead" else 0
        fates.append(fate)
    return fates


def _find_fate(scope: Scope, state: State, card: Card, share: int, sent: int) -> str:
    if card.captured == 0:
        return "unpaid"
    if sent > 0 or (scope.without == Break.SENT_COUNTS and _was_sent(state, share)):
        return "lead"
    if any(row.card == share and row.by_us and row.known in NOT_FAILED for row in state.refunds):
        return "mate"
    if any(row.card == share for row in state.outside):
        return "mate"
    if card.lost >= card.captured:
        return "lost"
    return "waits" if scope.without == Break.DELAY_IN_TARGET and not state.is_due else "due"


def _was_sent(state: State, share: int) -> bool:
    return any(row.share == share and row.known != "planned" for row in state.refunds)


def find_targets(scope: Scope, state: State, known: list[Card]) -> list[int]:
    """Return the target of each card: the amount that should be charged to it at the end."""
    if state.status != "captured":
        return [0] * len(known)
    fates = find_fates(scope, state, known)
    to_lead = sum(amount for amount, fate in zip(scope.shares, fates, strict=True) if fate == "lead")
    lead = scope.amount - to_lead - known[LEAD].others
    mates = zip(known[1:], fates, strict=True)
    return [lead, *(0 if fate == "mate" else card.captured - card.others for card, fate in mates)]


def find_wanted(scope: Scope, state: State, known: list[Card]) -> Wanted:
    """Return the refunds that cards are owed because more than their targets is charged to them.

    A reimbursement is at most the part of its share that has not been reimbursed yet. The sum of all
    reimbursements is at most the amount that is charged to the lead's card above its target.
    """
    targets = find_targets(scope, state, known)
    left = [card.borne - card.moving - target for card, target in zip(known, targets, strict=True)]
    if state.status != "captured":
        wanted = {(card, 0, state.part): left[card] for card in range(len(left))}
    else:
        wanted = {(card, 0, 0): left[card] for card in range(1, len(left))}
        for share, fate in enumerate(find_fates(scope, state, known), start=1):
            if fate == "lead":
                amount = min(scope.shares[share - 1] - sum_reimbursed(state, share), left[LEAD])
                left[LEAD] -= amount
                wanted[LEAD, share, 0] = amount
    return {key: amount for key, amount in wanted.items() if amount > 0}


def is_held(state: State, card: int, share: int) -> bool:
    """Return whether only an operator may resend the refund to the card, or the reimbursement of the share.

    This is the case if the refund was returned, or if it failed and the days of automatic retries are over.
    """
    part = 0 if share or state.status == "captured" else state.part
    purpose = (card, share, part)
    states = {r.known for r in state.refunds if r.by_us and (r.card, r.share, r.part) == purpose}
    return "returned" in states or ("failed" in states and state.is_late)


def _is_automatic(scope: Scope, state: State, card: int, share: int) -> bool:
    """Return whether `settle` plans this refund.

    If a part of the merchant's refund has failed, it is retried only after another part has settled.
    """
    if is_held(state, card, share):
        return False
    failed = {row.card for row in find_parts(state) if row.known == "failed"}
    return state.status != "refunding" or card not in failed or _has_settled(scope, state)


def _close_shares(scope: Scope, state: State, known: list[Card], wanted: Wanted) -> tuple[int, ...]:
    """For each share, return the closed amount: what its mate paid, minus reimbursements that were sent or planned."""
    closed = []
    for share, before in enumerate(state.closed, start=1):
        after = known[share].captured - sum_reimbursed(state, share) - wanted.get((LEAD, share, 0), 0)
        if state.status == "captured" and find_fates(scope, state, known)[share - 1] == "waits":
            after = before
        closed.append(max(before, after) if scope.without == Break.FINAL_CLOSING else after)
    return tuple(closed)


def sum_owed_to_lead(state: State, known: list[Card]) -> list[int]:
    """For each share, return our debt to the lead: the captured amount, minus settled reimbursements and closings."""
    return [
        known[share].captured - sum_reimbursed(state, share, ("settled",)) - closed
        for share, closed in enumerate(state.closed, start=1)
    ]


def sum_merchant(state: State, known: list[Card]) -> int:
    """Return the balance of the merchant's account.

    The merchant bears all refunds except reimbursements, and gets the closed amounts.
    """
    refunds = sum(row.amount for row in state.refunds if not row.share and row.known == "settled")
    outside = sum(row.amount for row in state.outside if not row.share)
    withdrawn = sum(card.withdrawn for card in known)
    return known[LEAD].captured - refunds - withdrawn - outside + sum(state.closed)
