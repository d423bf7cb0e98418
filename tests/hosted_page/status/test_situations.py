"""Every viewer sees the table's texts in every situation, and the amounts agree with the bank's books."""

import re

import pytest
from django.utils import translation

from checkout.models import Checkout
from hosted_page.status.cells import Cell, Situation, Viewer
from hosted_page.status.paid_cells import PAID, RETURNED
from hosted_page.status.table import TABLE
from tests import factories, mates
from tests.hosted_page.browsers import words
from tests.hosted_page.status.party import View
from tests.hosted_page.status.reading import (
    VALUE,
    amounts,
    headline,
    main_of,
    paragraphs,
    pattern,
    pence,
    plain,
    values_in,
)
from tests.hosted_page.status.situations import BUILDERS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]
S, V = Situation, Viewer
LANGUAGES = ("en-gb", "de")
# The form field that the viewer fills in if the page is a step of the payment.
FIELDS = {V.LEAD: "number", V.ORDER_LINK: "phone", V.HOLDER: "phone", V.GROUP_LINK: "share"}
PAYERS = {V.LEAD, V.PAID}
# The situations in which the lead of a split order does not see the bill.
SIGNED_AMOUNT = re.compile(r"(−?)(£[\d,]+\.\d\d)")
LABELS_OF_TOTAL = ("Final charge to your card", "Still owed to you")
ENDED = (S.REFUNDING, S.REFUNDED, S.REFUND_RETURNED)
# For each situation, the viewers whose headline states the amount that is returned to the card.
GOES_BACK = {S.REFUNDING: (V.LEAD, V.PAID), S.REFUNDED: (V.LEAD, V.PAID)}


def has_payer(situation: Situation) -> bool:
    return not PAYERS.isdisjoint(TABLE[situation])


def check_translation(cell: Cell) -> None:
    """Fail if a sentence of the cell is not translated into the active language."""
    paragraphs_of_cell = [part if isinstance(part, tuple) else (part,) for part in cell.money]
    sentences = {cell.headline, cell.title, cell.note, cell.action}.union(*paragraphs_of_cell)
    for sentence in sentences:
        spoken = str(sentence)
        with translation.override("en-gb"):
            assert spoken != str(sentence) or not VALUE.sub("", spoken), spoken


def check_words(situation: Situation, viewer: Viewer, page: str) -> None:
    """Fail if the page does not show the table's texts in the active language."""
    cell = TABLE[situation][viewer]
    for paragraph in cell.money:
        values_in(page, paragraph)
    if cell.state == "step":
        assert f'name="{FIELDS[viewer]}"' in main_of(page)
        return
    expected: object = cell.headline
    if viewer in GOES_BACK.get(situation, ()):
        expected = translation.gettext("{amount} goes back to your card")
    assert pattern(expected).fullmatch(headline(page)), (str(expected), headline(page))
    for further in (cell.title, cell.note, cell.action):
        assert pattern(further).search(plain(main_of(page))), str(further)


def read(view: View, language: str) -> str:
    answer = view.read(language)
    assert answer.status_code == 200 and answer["Content-Language"] == language
    return words(answer)


def check_refund(view: View, page: str) -> None:
    """Fail if the rows of a refund do not add up, or if the remaining amount differs from the bank's books."""
    (rows,) = re.findall(r'aria-labelledby="refund-title".*?class="total"', page, re.DOTALL)
    total = sum(-pence(amount) if minus else pence(amount) for minus, amount in SIGNED_AMOUNT.findall(rows))
    left = pence(next(words for words in paragraphs(page) if words.startswith(LABELS_OF_TOTAL)))
    assert total == left == bears(view, page)


def bears(view: View, page: str) -> int:
    """Return how much the bank's books still charge to the card that the page names. Fail if the page names several."""
    (card,) = set(re.findall(r"ending (\d{4})", page))
    return mates.borne(view.order)[card]


def amount_said(cell: Cell, page: str) -> int:
    """Return the amount in the page's headline, in pence.

    If the headline has no amount, use the amount in the other texts of the cell. Fail if these amounts differ.
    """
    if "£" in headline(page):
        return pence(headline(page))
    said = [paragraph for paragraph in cell.money if "{amount}" in str(paragraph)]
    (amount,) = {pence(values_in(page, paragraph)["amount"]) for paragraph in said}
    return amount


@pytest.mark.rule("page.viewer", "page.language", "pay.honest_page")
@pytest.mark.parametrize("situation", TABLE)
def test_each_viewer_reads_the_words_of_the_table(unpaid: Checkout, situation: Situation) -> None:
    scene = BUILDERS[situation](unpaid)
    assert set(scene.views) == set(TABLE[situation])
    for viewer, view in scene.views.items():
        for language in LANGUAGES:
            with translation.override(language):
                check_words(situation, viewer, read(view, language))
                if language != "en-gb":
                    check_translation(TABLE[situation][viewer])


@pytest.mark.rule("page.viewer", "pay.honest_page")
@pytest.mark.parametrize("situation", [situation for situation in PAID | RETURNED if has_payer(situation)])
def test_the_amount_that_a_payer_reads_is_the_amount_that_the_card_bears(
    unpaid: Checkout, situation: Situation
) -> None:
    views = BUILDERS[situation](unpaid).views
    for viewer in views.keys() & PAYERS:
        page = read(views[viewer], "en-gb")
        if situation in (S.REFUNDED, S.REFUND_RETURNED):
            check_refund(views[viewer], page)
        else:
            assert amount_said(TABLE[situation][viewer], page) == bears(views[viewer], page), viewer


@pytest.mark.rule("page.viewer", "share.borne")
@pytest.mark.parametrize("situation", [situation for situation in PAID | RETURNED if situation not in ENDED])
def test_the_bill_of_a_split_order_agrees_with_the_books(unpaid: Checkout, situation: Situation) -> None:
    bill = BUILDERS[situation](unpaid).bill
    assert bill is not None
    page = read(bill, "en-gb")
    owed = -factories.balances(bill.order.pk).get("lead", 0)
    assert pence(headline(page)) == bears(bill, page) - owed, "the card bears a share until it is reimbursed"
    (sums,) = re.findall(r'<dl class="group-sums">(.*?)</dl>', page, re.DOTALL)
    assert sum(amounts(sums)) == bill.order.amount
