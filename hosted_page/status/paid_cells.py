"""The cells in the table of pages for an order that is paid, returned or refunded. Rule page.viewer."""

from dataclasses import replace

from django.utils.translation import gettext_lazy as _

from hosted_page.status.cells import Cell, Situation, Viewer, cell, closed, live_cell, paused, step
from hosted_page.status.shared_cells import (
    ASK_LEAD,
    ASK_SHOP,
    BACK_TO_SHOP,
    BANK_RETURNED,
    COVERED,
    GOES_BACK,
    LINK_EXPIRED,
    NO_LONGER_ASKED,
    NO_NEED_TO_PAY,
    NOT_CHARGED,
    NOT_COVERED,
    NOTHING_MORE,
    REFUND_FAILED,
    RETURNED_REFUND,
    SHARE_IS_PAID,
    SIGN_IN,
    SOON_SHOWN,
    TRIED_TO_REFUND,
    Row,
)

S, V = Situation, Viewer

YOU_PAID = _("You paid {amount}")
TAKEN = _("<strong>{amount}</strong> was taken from {card}.")
GOES_TO_LEAD, IS_WITH_LEAD = _("It goes back to {name}’s card."), _("It is back on {name}’s card.")
SETTLED_UP = _("You’ve settled up with {name}.")
FREE_AGAIN = _(
    "If a mate takes a share but does not pay it, the share becomes free again after a few minutes."
)
PAID: dict[Situation, Row] = {
    S.PAID: {
        V.LEAD: cell(
            "confirmed",
            _("Confirmed and paid."),
            _("{shop} took <strong>{amount}</strong> from {card}."),
            place="shop",
            action=BACK_TO_SHOP,
        ),
        V.ORDER_LINK: cell(
            "confirmed",
            _("Confirmed and paid."),
            _("{shop} took <strong>{amount}</strong> from {card}."),
            place="shop",
            action=SIGN_IN,
        ),
        V.PAID: live_cell("share_paid", YOU_PAID, (TAKEN, GOES_TO_LEAD, SETTLED_UP)),
        V.PAY_LINK: cell(
            "share_paid",
            SHARE_IS_PAID,
            _("<strong>{amount}</strong> was taken from {card}. It goes back to {name}’s card."),
            action=SIGN_IN,
            place="shop",
            is_on_its_way=True,
        ),
        V.HOLDER: step(_("Pay your share")),
        V.GROUP_LINK: step(_("Take a share")),
        **COVERED,
    },
    S.REIMBURSED: {
        V.PAID: live_cell("share_paid", YOU_PAID, (TAKEN, IS_WITH_LEAD, SETTLED_UP)),
        V.PAY_LINK: cell(
            "share_paid",
            SHARE_IS_PAID,
            _("<strong>{amount}</strong> was taken from {card}. It is back on {name}’s card."),
            action=SIGN_IN,
            place="shop",
        ),
    },
    S.CLAIMED: {
        V.HOLDER: live_cell(
            "taken",
            _("This share is taken"),
            _(
                "Someone has taken this share through the group link and might be paying it now. You have not"
                " been charged."
            ),
            FREE_AGAIN,
        )
    },
    S.ALL_TAKEN: {
        V.GROUP_LINK: live_cell(
            "paused",
            _("All shares are taken"),
            FREE_AGAIN,
        )
    },
    S.ALL_PAID: {V.GROUP_LINK: closed(_("Everyone has paid"), NO_NEED_TO_PAY)},
    S.NO_SHARE_LEFT: {V.GROUP_LINK: closed(_("No shares left to pay"), NO_NEED_TO_PAY)},
    S.NOT_ASKED: {V.GROUP_LINK: closed(NO_LONGER_ASKED, NO_NEED_TO_PAY)},
    S.LINKS_EXPIRED: {V.GROUP_LINK: closed(LINK_EXPIRED, NOTHING_MORE)},
}
REVIEWED = _(
    "A bank is reviewing a payment for this order. This can take weeks. If the bank decides for {shop},"
    " this link works again. If not, this link stops working."
)
RETURNED: dict[Situation, Row] = {
    S.DISPUTED: NOT_COVERED
    | {
        V.LEAD: replace(
            PAID[S.PAID][V.LEAD],
            money=(
                *PAID[S.PAID][V.LEAD].money,
                _("Your bank is reviewing your payment of {amount}. You don’t need to do anything."),
            ),
        ),
        V.ORDER_LINK: PAID[S.PAID][V.ORDER_LINK],
        V.HOLDER: paused(NOT_CHARGED, REVIEWED),
        V.GROUP_LINK: paused(REVIEWED),
    },
    S.BANK_RETURNED: NOT_COVERED
    | {
        V.LEAD: cell("given_back", _("Your bank gave you {amount} back"), ASK_SHOP, action=BACK_TO_SHOP),
        V.ORDER_LINK: cell("given_back", _("Nothing to pay now"), BANK_RETURNED, action=SIGN_IN),
        V.PAID: cell(
            "refunded", _("Your bank gave you {amount} back"), _("You won’t be asked for your share again.")
        ),
        V.PAY_LINK: Cell(
            "link_ended", _("Nothing to pay now"), ((BANK_RETURNED, NOTHING_MORE),), action=SIGN_IN
        ),
        V.FORMER: closed(_("You are no longer asked to pay"), NOT_CHARGED, BANK_RETURNED, ASK_LEAD),
        V.GROUP_LINK: closed(_("Shares can no longer be paid"), BANK_RETURNED, NOTHING_MORE),
    },
    S.REFUNDED_OUTSIDE: NOT_COVERED
    | {
        V.FORMER: closed(
            _("You are no longer asked to pay"),
            NOT_CHARGED,
            _("{shop} has refunded a payment for this order. Ask {name} whether the order is still valid."),
        ),
        V.GROUP_LINK: closed(_("Shares can no longer be paid"), NOTHING_MORE),
    },
    S.REFUNDING: NOT_COVERED
    | {
        V.FORMER: closed(
            _("{shop} is refunding this order"), NOT_CHARGED, _("You don’t need to pay your share.")
        ),
        V.LEAD: live_cell(
            "refunding",
            GOES_BACK,
            (_("{shop} is refunding the whole <strong>{amount}</strong>."), "{each}", SOON_SHOWN),
        ),
        V.ORDER_LINK: live_cell(
            "refunding",
            _("This order is being refunded"),
            _("{shop} is refunding the whole <strong>{amount}</strong>."),
            action=SIGN_IN,
        ),
        V.PAID: live_cell(
            "refunding",
            GOES_BACK,
            _("{shop} is refunding the whole order. Your <strong>{amount}</strong> goes back to {card}."),
        ),
        V.PAY_LINK: live_cell(
            "refunding",
            _("This order is being refunded"),
            _("{shop} is refunding the whole order. The <strong>{amount}</strong> goes back to {card}."),
            action=SIGN_IN,
        ),
        V.HOLDER: paused(NOT_CHARGED, _("{shop} is refunding this order, so you don’t need to pay.")),
        V.GROUP_LINK: paused(_("{shop} is refunding this order, so you don’t need to pay.")),
    },
    S.REFUND_FAILED: COVERED
    | {
        V.LEAD: cell(
            "refund_failed",
            REFUND_FAILED,
            _(
                "{shop} tried to refund <strong>{amount}</strong>, but the bank did not accept it."
                " {shop} still has the money."
            ),
            _("Ask {shop} what happens next. The shop can try again."),
            action=BACK_TO_SHOP,
            place="shop",
        ),
        V.ORDER_LINK: cell("refund_failed", REFUND_FAILED, TRIED_TO_REFUND, action=SIGN_IN),
        V.PAID: cell(
            "refund_failed",
            REFUND_FAILED,
            (TRIED_TO_REFUND, _("Your <strong>{amount}</strong> has not gone back to {card}.")),
            _("Ask {shop} what happens next. The shop can try again."),
        ),
        V.PAY_LINK: cell("refund_failed", REFUND_FAILED, TRIED_TO_REFUND, action=SIGN_IN),
        V.HOLDER: step(_("Pay your share"), (TRIED_TO_REFUND, _("So the shares are open again."))),
        V.GROUP_LINK: step(_("Take a share"), (TRIED_TO_REFUND, _("So the shares are open again."))),
    },
    S.REFUNDED: NOT_COVERED
    | {
        V.FORMER: closed(_("This order was refunded"), NOT_CHARGED, _("You don’t need to pay your share.")),
        V.LEAD: cell(
            "refunded",
            _("Refunded"),
            (_("{shop} refunded the whole <strong>{amount}</strong>."), "{each}", SOON_SHOWN),
        ),
        V.ORDER_LINK: cell(
            "refunded",
            _("This order was refunded"),
            _("{shop} refunded the whole <strong>{amount}</strong>."),
            action=SIGN_IN,
        ),
        V.PAID: cell(
            "refunded",
            _("Refunded"),
            _("{shop} refunded the whole order. Your bank may take a few days to show it on {card}."),
        ),
        V.PAY_LINK: cell(
            "refunded",
            _("This order was refunded"),
            _("{shop} refunded the whole order. The <strong>{amount}</strong> went back to {card}."),
            action=SIGN_IN,
        ),
        V.GROUP_LINK: closed(_("This order was refunded"), NOTHING_MORE),
    },
    S.REFUND_RETURNED: {
        **dict.fromkeys((V.LEAD, V.PAID), cell("refunded", _("The refund was returned"), RETURNED_REFUND)),
        **dict.fromkeys(
            (V.ORDER_LINK, V.PAY_LINK),
            cell(
                "refunded",
                _("The refund was returned"),
                _(
                    "{shop} refunded this order, but a bank sent money back. It will be sent again or paid another way."
                ),
                action=SIGN_IN,
            ),
        ),
        **NOT_COVERED,
        V.FORMER: closed(_("This order was refunded"), NOT_CHARGED, _("You don’t need to pay your share.")),
        V.GROUP_LINK: closed(_("This order was refunded"), NOTHING_MORE),
    },
}
