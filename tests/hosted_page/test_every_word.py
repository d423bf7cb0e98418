"""Visit all payers' pages in each language except English, to check that no page contains English text."""

import html
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from checkout import captures, refunds
from checkout.models import Checkout, GroupLink
from hosted_page.opt_in import link
from hosted_page.sms import outbox, stopped_numbers
from tests import factories, mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import ASKS, FINN, Mate, Payer
from tests.house import messages

pytestmark = [pytest.mark.django_db, pytest.mark.rule("page.language")]
PLACEHOLDER = re.compile(r"%\(\w+\)s|\{\w*\}")
TAG = re.compile(r"<[^>]*>")
# The attributes that people read or hear: those in READ, and all data-* attributes except those in NAMES.
READ = {"alt", "aria-label", "content", "placeholder", "title"}
NAMES = {"data-state", "data-status"}
DECLINED = "4000000000000002"


class Words(HTMLParser):
    """The text of a page, and the attributes that people read or hear."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.nodes: list[str] = []
        self.spoken: list[str] = []
        self._is_code = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_code = tag in ("script", "style")
        for name, value in attrs:
            if value and (name in READ or (name.startswith("data-") and name not in NAMES)):
                self.spoken.append(value)

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._is_code:
            self.nodes.append(" ".join(data.split()))

    def whole(self) -> str:
        return " ".join(self.nodes) + "\n" + "\n".join(" ".join(text.split()) for text in self.spoken)


class Reader(Client):
    """A browser with a language. It stores the pages that it loads."""

    def __init__(self, language: str, pages: list[tuple[str, Words]], **options: Any) -> None:
        super().__init__(headers={"accept-language": language}, **options)
        self._pages = pages

    def request(self, **request: Any) -> Any:
        answer = super().request(**request)
        if answer.headers.get("Content-Type", "").startswith("text/html") and answer.content:
            self._pages.append((request["PATH_INFO"], Words(answer.content.decode())))
        return answer


def english_of(language: str) -> Iterator[tuple[str, bool, re.Pattern[str]]]:
    """Yield each translated message in English, whether the message has several words, and a regular expression.

    The expression matches the message with any values in place of the placeholders.
    """
    for message in messages.read(language):
        ids = [message.id] if isinstance(message.id, str) else list(message.id)
        for said in filter(None, ids):
            bare = html.unescape(TAG.sub("", said))
            if said in messages.forms(message) or len(PLACEHOLDER.sub("", bare).strip()) < 3:
                # Skip a message that is the same in both languages, or that is very short. For example, the
                # expression for "{count}p" would match every word that ends with p.
                continue
            filled = ".{1,80}?".join(re.escape(part) for part in PLACEHOLDER.split(bare))
            is_long = len(re.findall(r"[^\W\d]+", PLACEHOLDER.sub("", bare))) > 1
            yield said, is_long, re.compile(rf"(?<!\w){filled}(?!\w)" if is_long else filled)


def said_in_english(words: Words, messages_: list[tuple[str, bool, re.Pattern[str]]]) -> list[str]:
    whole, alone = words.whole(), [*words.nodes, *words.spoken]
    return [
        said
        for said, is_long, look in messages_
        if (look.search(whole) if is_long else any(look.fullmatch(text) for text in alone))
    ]


@pytest.fixture(params=["de", "es", "fr", "it", "nl"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pages(language: str) -> Iterator[list[tuple[str, Words]]]:
    """Yield a list in which a test collects the pages that it visits.

    At the end, fail if a page contains English text.
    """
    read: list[tuple[str, Words]] = []
    yield read
    english = list(english_of(language))
    found = {(path, said) for path, words in read for said in said_in_english(words, english)}
    assert found == set() and len(read) > 3


@pytest.fixture
def lea(unpaid: Checkout, language: str, pages: list[tuple[str, Words]]) -> Payer:
    payer = Payer(unpaid)
    payer.client = Reader(language, pages)
    return payer


def test_the_check_finds_untranslated_english_text(unpaid: Checkout) -> None:
    read: list[tuple[str, Words]] = []
    Reader("en", read).get("/pay", {"id": str(unpaid.pk)})
    found = said_in_english(read[0][1], list(english_of("de")))
    assert {"Your mobile number", "Text me a code", "Phone", "Test mode"} <= set(found)


def test_the_steps_are_fully_translated(lea: Payer) -> None:
    lea.get()
    lea.post("/phone", phone="12")
    lea.post("/phone", phone="07700 900123")
    lea.post("/code", code="1")
    lea.post("/code", code="000000" if lea.code() != "000000" else "111111")
    lea.post("/code", code=lea.code())
    lea.get()
    lea.post("/split", split="equal", people="99", your_name="Lea")
    lea.post("/split", split="equal", people="3", your_name="Lea", show="1")
    lea.post("/split", split="own", name="Finn", amount="x", your_name="")
    lea.post("/split", split="own", name="Finn", amount="9999", your_name="Lea")
    lea.post("/split", split="own", name="", amount="", your_name="Lea")
    lea.post("/split", split="equal", people="3", your_name="Lea")
    bank = lea.get("/card")["Location"]
    lea.client.get(bank)
    lea.client.post(bank, {"number": "1", "expiry": "1", "code": ""})
    back = lea.client.post(bank, {"number": DECLINED, "expiry": "08/49", "code": "123"})
    lea.client.get(lea.client.get(back["Location"])["Location"], follow=True)
    lea.client.post("/pay/opt-in?id=" + str(lea.checkout.pk), {"opt_in": "", "email": "x"})


@pytest.mark.parametrize(
    "status", ["authorized", "captured", "voided", "lapsed", "expired", "refunding", "refunded"]
)
def test_the_outcomes_of_an_order_are_fully_translated(
    lea: Payer, at: Callable[[str], Checkout], status: str
) -> None:
    lea.sign_in()
    at(status)
    lea.get()
    lea.client.cookies.clear()
    lea.get()
    lea.get(sign_in="1")


def test_the_banks_question_is_fully_translated(lea: Payer) -> None:
    question = lea.pay(ASKS)["Location"]
    lea.client.get(question)
    lea.get()
    lea.client.post(question, {"answer": "refuse"}, follow=True)
    lea.client.get(question)


def test_the_bill_and_its_shares_are_fully_translated(
    lea: Payer, language: str, pages: list[tuple[str, Words]]
) -> None:
    lea.pay(split="own", name=["Finn", ""], amount=["20", "30"], your_name="Lea")
    finn, amy = (Mate(share) for share in lea.checkout.payment_requests.order_by("position"))
    finn.client, amy.client = Reader(language, pages), Reader(language, pages)
    finn.get()
    lea.get()
    captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
    guest, path = Reader(language, pages), f"/pay/g/{GroupLink.objects.get().token}"
    guest.get(path)
    guest.get(f"{path}/qr")
    guest.post(f"{path}/take", {"share": "3", "name": ""})
    guest.post(f"{path}/take", {"share": "3", "name": "Amy"}, follow=True)
    lea.get()
    amy.get()
    guest.get(path)
    lea.post("/text-share", share=str(finn.share.pk), phone="12")
    lea.post("/text-share", share=str(finn.share.pk), phone=FINN)
    lea.get()
    finn.get()
    finn.pay()
    finn.get()
    for payer in (lea, finn):
        payer.post("/receipt")
        payer.get()
    lea.checkout.payment_requests.update(expires_at=timezone.now() + timedelta(hours=2))
    lea.get()
    amy.post("/decline")
    amy.get()
    for ask in ("", "again", "keep"):
        lea.get(asks=ask)
    Reader(language, pages).get("/pay", {"id": str(lea.checkout.pk)})
    mates.settled(finn.share)
    lea.get()
    refunds.accept(lea.checkout.merchant, lea.checkout.pk, ref="r", cause=CAUSE)
    for payer in (lea, finn, amy):
        payer.get()
    mates.pump(lea.checkout.pk, 3)
    for payer in (lea, finn, amy):
        payer.get()
    guest.get(path)


def test_separate_pages_are_fully_translated(
    lea: Payer, language: str, pages: list[tuple[str, Words]]
) -> None:
    stop = stopped_numbers.stop_link(outbox.number_digest("+447700900456")).partition("/pay/")[2]
    lea.client.get(f"/pay/{stop}")
    lea.client.post(f"/pay/{stop}")
    lea.post("/phone", phone="07700 900123")
    lea.post("/code", code=lea.code(), remember="yes")
    other = Payer(factories.checkout(lea.checkout.merchant))
    other.client = lea.client
    other.get()
    lea.get("/nothing")
    lea.client.get("/pay?id=x")
    Reader(language, pages, enforce_csrf_checks=True).post("/pay/phone", {})
    offers = urlsplit(link.url(lea.checkout, "app")).path
    lea.client.get(offers)
    lea.client.post(offers, {"opt_in": "yes", "email": "x"})
