"""The statuses of a checkout and of a share, and the allowed moves between statuses (rule money.states)."""

from django.db import models


class Status(models.TextChoices):
    """Status of a checkout. A checkout can become `expired` only if it is unpaid (rule expiry.end)."""

    CREATED = "created", "Not paid yet"
    AUTHORIZED = "authorized", "Held"
    CAPTURED = "captured", "Captured"
    VOIDED = "voided", "Voided"
    EXPIRED = "expired", "Expired"
    REFUNDING = "refunding", "Refunding"
    REFUNDED = "refunded", "Refunded"


class VoidReason(models.TextChoices):
    """Reason why a checkout was voided."""

    MERCHANT_CANCEL = "merchant_cancel", "Cancelled"
    AUTH_EXPIRED = "auth_expired", "Hold lapsed"


# For each move (from, to), the cause of the move. A database trigger allows exactly these moves.
ALLOWED_MOVES: dict[tuple[Status, Status], str] = {
    (Status.CREATED, Status.AUTHORIZED): "the customer's card is held",
    (Status.CREATED, Status.VOIDED): "the merchant cancels before payment",
    (Status.CREATED, Status.EXPIRED): "no one pays in time",
    (Status.AUTHORIZED, Status.CAPTURED): "the merchant captures",
    (Status.AUTHORIZED, Status.VOIDED): "the merchant cancels, or two minutes pass",
    (Status.CAPTURED, Status.REFUNDING): "a refund is accepted",
    (Status.REFUNDING, Status.REFUNDED): "the provider confirms the refund",
    (Status.REFUNDING, Status.CAPTURED): "the provider refuses the refund",
}

# A checkout has one of these statuses if its money was captured.
PAID = (Status.CAPTURED, Status.REFUNDING, Status.REFUNDED)

# For each status with a deadline, the column that contains the deadline.
DEADLINES: dict[Status, str] = {Status.AUTHORIZED: "capture_before", Status.CREATED: "payable_until"}

# The actions that the merchant may take on a checkout, by status.
ACTIONS: dict[Status, list[str]] = {
    Status.CREATED: ["cancel"],
    Status.AUTHORIZED: ["capture", "cancel"],
    Status.CAPTURED: ["refund"],
}


class ShareStatus(models.TextChoices):
    """Status of a mate's share (rules share.opens, share.ends)."""

    DRAFT = "draft", "Not asked yet"
    OPEN = "open", "Asked"
    PLEDGED = "pledged", "Pledged"
    PAYING = "paying", "Paying"
    PAID = "paid", "Paid"
    REIMBURSED = "reimbursed", "Paid to the lead"
    DECLINED = "declined", "Said no"
    EXPIRED = "expired", "Expired"
    CANCELLED = "cancelled", "Cancelled"
    REFUNDED = "refunded", "Refunded"


# For each move (from, to), the cause of the move. A database trigger allows exactly these moves.
ALLOWED_SHARE_MOVES: dict[tuple[ShareStatus, ShareStatus], str] = {
    (ShareStatus.DRAFT, ShareStatus.OPEN): "the merchant captures, or the lead gets everyone in first",
    (ShareStatus.DRAFT, ShareStatus.CANCELLED): "the order ends without a capture",
    (ShareStatus.OPEN, ShareStatus.PAYING): "the mate's card is being asked",
    (ShareStatus.OPEN, ShareStatus.DECLINED): "the mate says no",
    (ShareStatus.OPEN, ShareStatus.EXPIRED): "no one pays in time",
    (ShareStatus.OPEN, ShareStatus.CANCELLED): "the lead keeps the share, or the order is refunded",
    (ShareStatus.DECLINED, ShareStatus.OPEN): "the mate changes their mind, or the lead asks again",
    (ShareStatus.DECLINED, ShareStatus.CANCELLED): "the lead keeps the share",
    (ShareStatus.CANCELLED, ShareStatus.OPEN): "the lead asks again",
    (ShareStatus.PAYING, ShareStatus.OPEN): "the mate's payment fails",
    (ShareStatus.PAYING, ShareStatus.PAID): "the mate's money is taken",
    (ShareStatus.PAYING, ShareStatus.PLEDGED): "the mate's card is held, and the lead has not paid yet",
    (ShareStatus.PLEDGED, ShareStatus.PAYING): "the merchant captures",
    (ShareStatus.PLEDGED, ShareStatus.OPEN): "the pledge ends",
    (ShareStatus.PAID, ShareStatus.REIMBURSED): "the lead's card has got the share back",
    (ShareStatus.PAID, ShareStatus.REFUNDED): "the order is refunded before the lead got the share",
    (ShareStatus.REIMBURSED, ShareStatus.REFUNDED): "the order is refunded",
    (ShareStatus.REIMBURSED, ShareStatus.PAID): "the lead wins a lost dispute on appeal",
    (ShareStatus.REFUNDED, ShareStatus.PAID): "the mate wins a lost dispute on appeal",
}

# A share with one of these statuses is not paid yet, and a mate is or will be asked to pay it.
SHARE_OUTSTANDING = (ShareStatus.DRAFT, ShareStatus.OPEN, ShareStatus.PLEDGED, ShareStatus.PAYING)

# An order can have pledges if it has one of these statuses.
PLEDGEABLE = (Status.CREATED, Status.AUTHORIZED)

# A share has one of these statuses if a mate's card has paid it and the payment was not refunded.
SHARE_PAID = (ShareStatus.PAID, ShareStatus.REIMBURSED)


class MoveRefused(Exception):
    """The table of states does not allow this move."""


def check_move(origin: str, to: str) -> None:
    """Raise MoveRefused unless the table allows the move of a checkout."""
    if (origin, to) not in ALLOWED_MOVES:
        raise MoveRefused(f"A checkout never goes from {origin} to {to}.")


def check_share_move(origin: str, to: str) -> None:
    """Raise MoveRefused unless the table allows the move of a share."""
    if (origin, to) not in ALLOWED_SHARE_MOVES:
        raise MoveRefused(f"A share never goes from {origin} to {to}.")


def allowed_actions(status: str) -> list[str]:
    """Return the actions that the merchant may take on a checkout with this status."""
    return ACTIONS.get(Status(status), [])


class StateConflict(Exception):
    """The status of the checkout does not allow the requested action."""

    def __init__(self, status: str) -> None:
        super().__init__(f"The checkout is {status}.")
        self.status = status


class OperationInProgress(Exception):
    """A card operation is open on the checkout (rules cancel.open_operation, doubt.nothing_over_it)."""
