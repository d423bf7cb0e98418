"""Texts with the old link of a share. The lead has asked the mate again since, so the share has a new link."""

import pytest

from checkout import mate_shares
from hosted_page.models import SmsMessage
from hosted_page.sms import sending
from hosted_page.sms.senders import InDoubt, Refused
from tests.hosted_page.browsers import Mate, Payer, words
from tests.hosted_page.sms.test_outbox import FINN_SENT, Network, ask, is_free, send_all

pytestmark = [pytest.mark.django_db, pytest.mark.rule("share.bends", "sms.invitation")]


@pytest.fixture
def claimed_text(lead: Payer, finn: Mate, network: Network) -> SmsMessage:
    """Return the first text to Finn, which a worker has claimed but not sent yet.

    After the claim, Finn declined, and Lea asked him again.
    """
    ask(lead, finn.share)
    text = sending.claim()
    assert text is not None
    mate_shares.decline(finn.share.pk)
    lead.post("/ask-again", share=str(finn.share.pk))
    return text


def test_a_new_link_can_be_sent_at_once_to_the_same_number(
    lead: Payer, finn: Mate, claimed_text: SmsMessage, network: Network
) -> None:
    sending.send(claimed_text)
    page = words(lead.get())
    assert "text the link to" in page and "•••• 0456" in page and "You can remind them from" not in page
    old = finn.share.token
    assert finn.status() == "open" and finn.share.token != old
    network.sent.clear()
    for _ in range(2):
        ask(lead, finn.share, "")
    send_all()
    [(phone, body)] = network.sent.values()
    assert phone == FINN_SENT and finn.share.token in body
    assert "You can remind them from" in words(lead.get())


@pytest.mark.parametrize("error", [Refused("bad_number"), InDoubt("no_answer")])
def test_a_new_link_is_queued_even_if_the_old_links_text_fails(
    lead: Payer, finn: Mate, claimed_text: SmsMessage, network: Network, error: Exception
) -> None:
    ask(lead, finn.share, "")
    network.error = error
    sending.send(claimed_text)
    page = words(lead.get())
    assert "•••• 0456" in page and "You can remind them from" in page and not is_free(finn.share)


def test_a_number_is_dropped_if_the_carrier_refuses_it(
    lead: Payer, finn: Mate, claimed_text: SmsMessage, network: Network
) -> None:
    network.error = Refused("bad_number")
    sending.send(claimed_text)
    assert "0456" not in words(lead.get()) and is_free(finn.share)
