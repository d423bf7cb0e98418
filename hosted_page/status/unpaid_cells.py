"""The cells in the table of pages for an order that is not paid. Rule page.viewer."""

from dataclasses import replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from hosted_page.status.cells import Cell, Situation, Viewer, cell, live_cell, step
from hosted_page.status.shared_cells import (
    ANOTHER_CARD,
    BACK_TO_SHOP,
    CANNOT_TAKE,
    DO_NOT_PAY_AGAIN,
    ENDED,
    EXPIRED,
    NO_MONEY_YET,
    NOT_CHARGED_STRONG,
    NOT_OPEN_YET,
    ORDER_ENDED,
    UNTIL_CONFIRMED,
    Row,
)

S, V = Situation, Viewer


def _waiting_row(own: Cell, others: Cell) -> Row:
    """Return the cells for each viewer while a bank has not answered.

    Only the pages of an order show where the money is.
    """
    place: dict[str, Any] = {"place": "hold", "is_on_its_way": True}
    return {
        V.LEAD: replace(own, **place),
        V.ORDER_LINK: replace(others, **place),
        V.HOLDER: own,
        V.PAY_LINK: others,
    }


BANK_IS_SILENT, THE_BANK_IS_SILENT = _("Your bank has not answered"), _("The bank has not answered")
HELD_ON_CARD = _("<strong>{amount}</strong> is set aside on {card}. {shop} is checking the order.")
HELD = live_cell(
    "held",
    _("Held, not taken yet"),
    _("<strong>{amount}</strong> is set aside on {card}. {shop} is checking your order."),
    place="hold",
)
CONTINUES_LATER = _(
    "If {shop} can take payments again by <strong>{until}</strong>, this page lets you continue."
)
RELEASED = cell(
    "released",
    _("Released. Nothing was taken."),
    ("{why}", _("<strong>{amount}</strong> is no longer held on {card}.")),
    (ORDER_ENDED, "{again}"),
    action=BACK_TO_SHOP,
    note=_("Your bank may still show it for a few days. It is not a charge, and it disappears on its own."),
    place="card",
)
NOT_OWN_NOTE = _(
    "The bank may still show it for a few days. It is not a charge, and it disappears on its own."
)
UNPAID: dict[Situation, Row] = {
    S.UNPAID: {V.LEAD: step(_("Pay by card")), V.ORDER_LINK: step(_("Sign in")), **NOT_OPEN_YET},
    S.COLLECTING: {
        V.LEAD: live_cell(
            "collecting",
            _("{count} of {asked} mates are in"),
            _("If you pay now, you cover <strong>{amount}</strong> until the others pay."),
            action=_("Change who pays"),
        ),
        V.HOLDER: step(_("Hold my share on my card")),
        V.GROUP_LINK: step(_("Take a share")),
    },
    S.SUSPENDED: {
        **dict.fromkeys(
            (V.LEAD, V.ORDER_LINK),
            live_cell(
                "suspended",
                CANNOT_TAKE,
                (
                    NOT_CHARGED_STRONG,
                    _(
                        "Your order is kept until <strong>{until}</strong>. If {shop} can take payments again"
                        " before then, this page lets you continue."
                    ),
                ),
                action=BACK_TO_SHOP,
            ),
        ),
        V.HOLDER: live_cell(
            "suspended",
            CANNOT_TAKE,
            (
                NOT_CHARGED_STRONG,
                _(
                    "{name} has paid for the order, and covers your share for now."
                    " Your link works until <strong>{until}</strong>."
                ),
            ),
        ),
        V.GROUP_LINK: live_cell(
            "suspended",
            CANNOT_TAKE,
            (
                _("{name} has paid for the order, and covers the shares for now."),
                _(
                    "If {shop} can take payments again by <strong>{until}</strong>, this page shows the free"
                    " shares again."
                ),
            ),
        ),
    },
    S.STOPPED: {
        V.HOLDER: live_cell("suspended", CANNOT_TAKE, (NOT_CHARGED_STRONG, CONTINUES_LATER)),
        V.GROUP_LINK: live_cell("suspended", CANNOT_TAKE, (NOT_CHARGED_STRONG, CONTINUES_LATER)),
    },
    S.ALL_IN: {V.GROUP_LINK: live_cell("paused", _("Everyone’s in"), _("All shares are taken."))},
    S.CONFIRM: {
        V.LEAD: live_cell(
            "confirm",
            _("Confirm with your bank"),
            (_("Your bank wants to be sure that this is you."), UNTIL_CONFIRMED),
            action=_("Go to your bank"),
            place="card",
        ),
        V.ORDER_LINK: live_cell(
            "confirm",
            _("Not confirmed yet"),
            (_("The bank is asking the payer to confirm."), UNTIL_CONFIRMED),
            place="card",
        ),
        V.HOLDER: live_cell(
            "confirm",
            _("Confirm with your bank"),
            _("Your bank wants to be sure that this is you. No money is taken until you confirm."),
            action=_("Go to your bank"),
        ),
        V.PAY_LINK: live_cell(
            "confirm",
            _("Someone is paying this"),
            _("The payer’s bank is asking them to confirm the payment."),
        ),
    },
    S.CHECKING: _waiting_row(
        live_cell(
            "checking", _("Checking with your bank"), ("{asked}", NO_MONEY_YET), title=DO_NOT_PAY_AGAIN
        ),
        live_cell("checking", _("Checking with the bank"), ("{asked}", NO_MONEY_YET), title=DO_NOT_PAY_AGAIN),
    ),
    S.SILENT: _waiting_row(
        live_cell(
            "silent",
            BANK_IS_SILENT,
            _(
                "You don’t have to wait. If you use another card, any hold on your previous card is"
                " released. Or wait here for your bank’s answer."
            ),
            title=_("No money has been taken."),
            action=ANOTHER_CARD,
        ),
        live_cell("silent", THE_BANK_IS_SILENT, title=_("No money has been taken.")),
    ),
    S.PLEDGED: {
        V.HOLDER: live_cell(
            "pledged",
            _("You’re in for {amount}"),
            (
                _("<strong>{amount}</strong> is held on {card}."),
                _("We take it if {name} pays by <strong>{until}</strong> and {shop} confirms."),
                _("Otherwise we release it."),
            ),
            action=_("Withdraw"),
        ),
        V.PAY_LINK: live_cell(
            "pledged",
            _("Someone is in for this share"),
            _("The amount is held on a card. We take it only if {name} pays."),
        ),
    },
    S.PLEDGE_CHECKED: {
        V.HOLDER: live_cell(
            "pledged",
            _("You’re in for {amount}"),
            (
                _("<strong>{amount}</strong> is held on {card}."),
                _("{name}’s card is held too. You can no longer withdraw."),
                _("We take your share once {shop} confirms."),
                _("Otherwise we release it."),
            ),
        ),
        V.PAY_LINK: live_cell(
            "pledged",
            _("Someone is in for this share"),
            _("The amount is held on a card. We take it only if {shop} confirms."),
        ),
    },
    S.TAKING: {
        V.HOLDER: live_cell(
            "checking", _("Paying your share"), _("This takes a moment."), title=DO_NOT_PAY_AGAIN
        ),
        V.PAY_LINK: live_cell(
            "checking", _("Someone is paying this"), _("This takes a moment."), title=DO_NOT_PAY_AGAIN
        ),
    },
    S.TAKING_SILENT: {
        V.HOLDER: live_cell(
            "silent",
            BANK_IS_SILENT,
            _(
                "We don’t know yet whether your <strong>{amount}</strong> was taken. You don’t have to wait"
                " here."
            ),
            _(
                "If your bank takes it, this page shows your receipt. If not, the hold on your card is"
                " released, and this page shows what you can do."
            ),
            title=DO_NOT_PAY_AGAIN,
        ),
        V.PAY_LINK: live_cell(
            "silent",
            THE_BANK_IS_SILENT,
            _("We don’t know yet whether the <strong>{amount}</strong> for this share was taken."),
            title=DO_NOT_PAY_AGAIN,
        ),
    },
    S.HELD: {V.LEAD: HELD, V.ORDER_LINK: replace(HELD, money=(HELD_ON_CARD,))} | NOT_OPEN_YET,
    S.ASKED: dict.fromkeys(
        (V.LEAD, V.ORDER_LINK),
        live_cell(
            "asking",
            _("Waiting for the bank"),
            _(
                "<strong>{amount}</strong> is set aside on {card}."
                " {shop} has asked for it, and the bank has not answered yet."
            ),
            DO_NOT_PAY_AGAIN,
            place="hold",
        ),
    )
    | NOT_OPEN_YET,
    S.CANCELLED: dict.fromkeys(
        (V.LEAD, V.ORDER_LINK),
        cell(
            "cancelled",
            _("This order was cancelled"),
            ("{unpaid}", "{why}"),
            _("Start again in the shop if you still want it."),
            action=BACK_TO_SHOP,
        ),
    )
    | ENDED,
    S.RELEASING: dict.fromkeys(
        (V.LEAD, V.ORDER_LINK),
        live_cell(
            "releasing",
            _("Releasing. Nothing was taken."),
            ("{why}", _("<strong>{amount}</strong> on {card} is being released.")),
            _("The bank has not ended the hold yet. We’re still trying. This can take a few minutes."),
            action=BACK_TO_SHOP,
            place="hold",
        ),
    )
    | ENDED,
    S.RELEASED: {V.LEAD: RELEASED, V.ORDER_LINK: replace(RELEASED, note=NOT_OWN_NOTE)} | ENDED,
    S.EXPIRED: dict.fromkeys(
        (V.LEAD, V.ORDER_LINK),
        cell(
            "expired",
            _("This order has expired"),
            ("{unpaid}", "{until}"),
            _("Prices may have changed. Start again in the shop."),
            action=BACK_TO_SHOP,
        ),
    )
    | EXPIRED,
}
