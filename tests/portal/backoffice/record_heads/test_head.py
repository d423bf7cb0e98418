"""The parts that the tops of several pages share: the filled button, and the step for a discrepancy."""

import pytest

from checkout.models import Checkout
from payments.discrepancies import definitions, kinds, reporting
from payments.discrepancies.definitions import Remedy
from payments.models import Discrepancy, Operation
from portal.backoffice.record_heads import head
from portal.backoffice.record_heads.head import Head, Link

pytestmark = pytest.mark.rule("operator.page")
REMEDIES = (definitions.SEND_AGAIN, definitions.SETTLE_OUTSIDE)
LINK = Link("Open the order", "/admin/")


@pytest.mark.parametrize(
    ("shown", "is_loud"),
    [
        (Head("", names_button=True, links=[LINK]), True),
        (Head("", names_button=False, links=[LINK]), False),
        (Head("", names_button=True, links=[LINK], action="resend"), False),
        (Head("", names_button=True, links=[LINK], form=LINK), False),
    ],
)
def test_a_link_is_filled_only_if_the_step_names_it(shown: Head, is_loud: bool) -> None:
    assert shown.has_loud_link == is_loud


@pytest.mark.parametrize(
    ("remedies", "page", "words"),
    [
        (REMEDIES, "", "Send again and Settled outside are on the operation’s page."),
        (REMEDIES[:1], "discrepancy", "Send again is on the operation’s page."),
        (REMEDIES, "operation", ""),
        ((definitions.CLOSE,), "operation", "Close with a note is on the discrepancy’s page."),
        ((), "", ""),
    ],
)
def test_remedies_on_another_page_are_named_with_their_page(
    remedies: tuple[Remedy, ...], page: str, words: str
) -> None:
    assert head.page_of_remedies(remedies, page) == words


@pytest.mark.django_db
def test_a_step_names_the_cause_then_the_note_then_what_to_do(captured: Checkout) -> None:
    reporting.report_operation(Operation.objects.get(kind="capture"), kinds.ANOTHER_AMOUNT)
    step = head.case_step(Discrepancy.objects.get(), (), note="Look it up first.")
    kind = kinds.ANOTHER_AMOUNT
    assert step == f"{kind.sentence}. Look it up first. {kind.what_to_do}"


@pytest.mark.django_db
def test_an_order_that_does_not_exist_is_named_as_such(captured: Checkout) -> None:
    assert head.order_words(captured.pk) == f"order {captured.merchant_order_id}"
    assert head.order_words(captured.merchant_id) == head.order_words(None) == "no order"
