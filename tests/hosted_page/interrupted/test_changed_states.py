"""An order or a share changes while a page is open. The next click or update must show the page for the new state."""

import pytest

from checkout.models import Checkout
from hosted_page.models import SmsMessage
from tests.hosted_page.browsers import words
from tests.hosted_page.interrupted import changes
from tests.hosted_page.interrupted.visits import POLL, STEPS, bring, heading, is_part_or_reload, payments
from tests.hosted_page.status.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted"), pytest.mark.rule("page.viewer")]
SUSPENDED = "Acme Tickets can’t take payments right now"
CODE, HELD = "Enter the 6-digit code", "Held, not taken yet"
CANCELLED, EXPIRED = "This order was cancelled", "This order has expired"
ELSEWHERE, GROUP = "Someone else has signed in to pay", "Lea paid. Which share is yours?"
NO_MORE, NEWER, NOTHING = (
    "Lea is no longer asking for this",
    "This link has been replaced",
    "Nothing to pay now",
)
SPLIT, PAYING = "Who’s in on this?", "Paying your share"
REFUNDED = "This order was refunded"
BACK, SHARE_BACK = "£90.00 goes back to your card", "£20.00 goes back to your card"
# The heading of the next page if a form is sent after a change. Each kind of link has its own table: ORDER, SHARE
# and AT_GROUP_LINK. The outer key is the change. The inner key is the step whose form is sent.
ORDER = {
    "cancelled": {"phone": CANCELLED, "code": CANCELLED, "split": CANCELLED, "card": CANCELLED},
    "expired": {"phone": EXPIRED, "code": EXPIRED, "split": EXPIRED, "card": EXPIRED, "question": HELD},
    "suspended": {
        "phone": SUSPENDED,
        "code": SUSPENDED,
        "split": SUSPENDED,
        "card": SUSPENDED,
        "question": HELD,
    },
    "signed in elsewhere": {"phone": CODE, "code": SPLIT, "split": ELSEWHERE, "card": ELSEWHERE},
    "paid elsewhere": {"phone": HELD, "code": HELD, "split": HELD, "card": HELD},
    "captured": {"held": "You’re covering £90.00 for now"},
    "released": {"held": "Releasing. Nothing was taken."},
    "lapsed": {"held": "Releasing. Nothing was taken."},
    "refunding": {"paid": BACK},
    "refunded": {"paid": BACK},
}
SHARE = {
    "cancelled": {"phone": NO_MORE, "code": NO_MORE, "card": NO_MORE},
    "declined": {"phone": "You said no", "code": "You said no", "card": "You said no"},
    "replaced": {"phone": NEWER, "code": NEWER, "card": NEWER},
    "expired": {
        "phone": "This link has expired",
        "code": "This link has expired",
        "card": "This link has expired",
    },
    "taken": {"phone": "This share is taken", "code": "This share is taken", "card": "This share is taken"},
    "paid": {"phone": CODE, "code": "This share is paid", "card": "This share is paid"},
    "disputed": {"phone": NOTHING, "code": NOTHING, "card": NOTHING, "question": NOTHING},
    "refunding": {"phone": NOTHING, "code": NOTHING, "card": NOTHING, "paid": SHARE_BACK},
    "refunded": {"phone": REFUNDED, "code": REFUNDED, "card": REFUNDED, "paid": SHARE_BACK},
    "suspended": {"phone": SUSPENDED, "code": SUSPENDED, "card": SUSPENDED, "question": PAYING},
}
AT_GROUP_LINK = {
    "cancelled": {"phone": GROUP, "code": GROUP, "card": GROUP},
    "declined": {"phone": GROUP, "code": GROUP, "card": GROUP},
    "expired": {"phone": GROUP, "code": GROUP, "card": GROUP},
    "freed": {"phone": CODE, "code": "Pay £20.00"},
    "taken": {"phone": GROUP, "code": GROUP, "card": GROUP},
    "paid": {"phone": CODE, "code": GROUP, "card": GROUP},
    "disputed": {"phone": NOTHING, "code": NOTHING, "card": NOTHING, "question": NOTHING},
    "refunding": {"phone": NOTHING, "code": NOTHING, "card": NOTHING, "paid": SHARE_BACK},
    "refunded": {"code": REFUNDED, "card": REFUNDED, "paid": SHARE_BACK},
    "suspended": {"phone": SUSPENDED, "code": SUSPENDED, "card": SUSPENDED, "question": PAYING},
}
SAID = {"order": ORDER, "share": SHARE, "group": AT_GROUP_LINK}
CASES = [(link, change, step) for link, table in SAID.items() for change in table for step in table[change]]
# For each change, the notice at the top of the group page.
NOTICES = {
    "cancelled": ("Lea is no longer asking for this", "You have not been charged."),
    "declined": ("Lea is no longer asking for this", "You have not been charged."),
    "expired": ("Lea is no longer asking for this", "You have not been charged."),
    "taken": ("Finn’s share was just taken", "Take another, or ask Lea."),
    "paid": ("Finn’s share is paid", "Did you pay this? Sign in to see your receipt"),
}


@pytest.mark.parametrize(("link", "change", "step"), CASES)
def test_a_form_of_an_older_page_shows_the_current_state(
    unpaid: Checkout, link: str, change: str, step: str
) -> None:
    page = bring(link, step, unpaid)
    SmsMessage.objects.all().delete()
    changes.CHANGES[link][change](page)
    before = payments(unpaid)
    assert is_part_or_reload(page.get(headers=POLL))
    answer = STEPS[step].send(page)
    assert heading(answer) == SAID[link][change][step]
    is_paid = step == "question" and change in ("expired", "suspended")
    assert payments(unpaid) == before + is_paid
    if heading(answer) == GROUP:
        assert all(notice in plain(words(answer)) for notice in NOTICES[change])


@pytest.mark.parametrize("change", ["refunding", "disputed"])
def test_the_group_page_offers_no_share_that_cannot_be_taken(unpaid: Checkout, change: str) -> None:
    page = bring("group", "phone", unpaid)
    changes.CHANGES["group"][change](page)
    page.client.cookies.clear()
    answer = page.client.get(page.path, follow=True)
    assert heading(answer) == NOTHING and "Take another" not in words(answer)


def test_a_mate_whose_order_is_refunded_meanwhile_is_not_asked_to_confirm_again(unpaid: Checkout) -> None:
    page = bring("share", "question", unpaid)
    changes.CHANGES["share"]["refunding"](page)
    assert heading(STEPS["question"].send(page)) != "Confirm with your bank"
