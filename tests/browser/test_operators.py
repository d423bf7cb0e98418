"""The operators' page in a browser: forms that confirm below a row, automatic updates, keyboard, large letters."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.office import Office

pytestmark = [pytest.mark.journey, pytest.mark.long]
PAGE = "/admin/operations/"
ORDERS = "/admin/checkout/checkout/"
ROW = "li:has-text('The provider reports a different amount') >> nth=0"
TOPS = """() => [...document.querySelectorAll("li:has(.case-amount) :is(h3, .actions > *), .case-amount")]
  .filter(it => it.closest("li") === document.querySelector(".question:not(:empty)")?.closest("li")
    || it.closest("li").querySelector("[data-asks]"))
  .slice(0, 4).map(it => [it.textContent.trim(), it.getBoundingClientRect().top + scrollY])"""
HIDE = """() => {
  Object.defineProperty(document, "hidden", {value: true, configurable: true});
  document.addEventListener("htmx:afterRequest", () => (window.asked = true));
}"""
TEXTED = """
from config.lib import clock
from checkout.models import Checkout
from hosted_page.models import SmsMessage
order, now = Checkout.objects.first(), clock.now()
SmsMessage.objects.create(
    kind="return", merchant=order.merchant, checkout_uuid=order.pk, subject=order.pk, phone="+447700900123",
    created_at=now, ends_at=now, sent_at=now, ended_at=now, receipt="undelivered",
    refusal="landline or unreachable carrier",
)
"""
LOGGED = """
from config.lib import clock
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from checkout.models import Checkout, IdempotencyKey
from portal.models import LoginAttempt, User
kind, order = ContentType.objects.get_for_model(Checkout), Checkout.objects.first()
LogEntry.objects.create(
    user=User.objects.filter(is_superuser=True).first(), action_flag=CHANGE, content_type=kind, object_id=order.pk,
    object_repr=str(order), change_message="Cancelled: The customer called twice, because the tickets were for another"
    " night, and the shop had no more of them for Saturday.",
)
digests = {"account_digest": "0a" * 32, "address_digest": "0b" * 32, "site_digest": "0c" * 32}
LoginAttempt.objects.create(kind="password", created_at=clock.now(), **digests)
order.merchant.idempotencykey_set.all().delete()
IdempotencyKey.objects.create(merchant=order.merchant, key="order-20417-" * 20, status=201, created_at=clock.now())
"""
EVERY = 5_000  # milliseconds between two updates


@pytest.fixture
def page(office: Office, open_page: Callable[..., Page]) -> Page:
    return office.at(office.sign_in(open_page()), PAGE)


def verb(page: Page, words: str = "Close with a note") -> str:
    """Return the selector of the link that starts an action in the row ROW.

    The link is selected by its id, because the id stays the same when the page updates itself.
    """
    return "#" + (page.locator(ROW).locator(f"a:text-is('{words}')").get_attribute("id") or "")


class TestTheQuestion:
    def test_opens_below_its_row_by_keyboard_and_restores_the_focus(self, page: Page) -> None:
        before, opener = page.evaluate(TOPS), verb(page)
        page.focus(opener)
        page.keyboard.press("Enter")
        expect(page.locator("form.ask input.input")).to_be_focused()
        assert page.evaluate(TOPS) == before, "what was tapped has not moved"
        expect(page.locator(opener)).to_have_attribute("aria-expanded", "true")
        page.keyboard.press("Escape")
        expect(page.locator(opener)).to_be_focused()
        expect(page.locator("form.ask")).to_have_count(0)
        page.keyboard.press("Enter")
        page.locator("form.ask [data-back]").focus()
        page.keyboard.press("Enter")
        expect(page.locator(opener)).to_be_focused()
        assert page.url.endswith(PAGE)

    def test_replaces_the_question_that_was_open_before(self, page: Page) -> None:
        page.click("a:text-is('Settled outside') >> nth=0")
        expect(page.locator("form.ask h3")).to_have_text("Book the refund of £47.75 as settled outside?")
        page.click(verb(page))
        expect(page.locator("form.ask h3")).to_have_text("Close this discrepancy?")

    @pytest.mark.long
    def test_keeps_its_text_and_focus_during_updates(self, page: Page) -> None:
        page.click(verb(page))
        page.fill("form.ask input.input", "It was")
        page.wait_for_timeout(EVERY + 1_500)
        expect(page.locator("form.ask input.input")).to_have_value("It was")
        expect(page.locator("form.ask input.input")).to_be_focused()

    def test_is_a_page_without_script(self, office: Office, open_page: Callable[..., Page]) -> None:
        page = office.sign_in(open_page(java_script_enabled=False))
        office.report("missing_there")
        office.at(page, PAGE)
        row = page.locator("li:has-text('books lack a capture') >> nth=0")
        row.locator("a:text-is('Close with a note')").click()
        page.fill("form.ask input.input", "It was ours")
        page.click("form.ask button")
        page.wait_for_url(f"**{PAGE}")
        expect(page.locator("[role=status]")).to_contain_text("Closed")
        expect(page.locator("li:has-text('books lack a capture')")).to_have_count(0)


class TestAList:
    @pytest.mark.parametrize(
        ("address", "needed", "words"),
        [
            ("/admin/hosted_page/smsmessage/", ("what", "state", "time", "merchant"), "unreachable carrier"),
            ("/admin/checkout/refund/", ("what", "amount", "state", "time", "merchant"), "Reference"),
            (
                "/admin/webhooks/endpoint/",
                ("subscription", "last success", "failing since", "last error", "timeouts in a row"),
                "the certificate has expired",
            ),
            ("/admin/admin/logentry/", ("time", "operator", "about", "what happened"), "for another night"),
            (
                "/admin/portal/loginattempt/",
                ("created", "kind", "account digest", "address digest"),
                "0a0a…0a0a0a",
            ),
            (
                "/admin/checkout/idempotencykey/",
                ("created", "merchant", "key", "answer"),
                "order-20417-order",
            ),
            ("/admin/webhooks/signingsecret/", ("id", "subscription", "created", "expires"), "http://127"),
            ("/admin/usersessions/usersession/", ("user", "last seen", "browser"), "Chrome on Linux"),
        ],
    )
    def test_fits_a_laptop(
        self, office: Office, page: Page, address: str, needed: tuple[str, ...], words: str
    ) -> None:
        page.set_viewport_size({"width": 1280, "height": 800})
        office.service.command("shell", "-c", TEXTED)
        office.service.command("shell", "-c", LOGGED)
        office.fail_endpoint()
        office.at(page, address)
        (sizes,) = page.locator(".results").evaluate_all(
            "its => its.map(it => [it.scrollWidth, it.clientWidth])"
        )
        assert sizes[0] <= sizes[1], sizes
        heads = [head.strip().lower() for head in page.locator(".results thead th").all_inner_texts()]
        assert set(needed) <= set(heads), heads
        assert words in " ".join(page.locator(".results tbody tr").all_inner_texts())

    def test_counts_ticked_rows_and_asks_before_it_cancels_them(self, office: Office, page: Page) -> None:
        office.pay("to tick")
        office.at(page, ORDERS)
        page.check("input.action-select >> nth=0")
        expect(page.locator(".action-counter")).to_contain_text("1 of")
        page.click(".list-actions button:has-text('Cancel')")
        expect(page.locator("h1")).to_contain_text("Cancel NF-")
        page.click("a:text-is('Back without changes')")
        expect(page).to_have_url(f"{office.service.base_url}{ORDERS}")

    @pytest.mark.long
    def test_says_to_how_many_ticked_rows_an_action_applies(self, office: Office, page: Page) -> None:
        office.pay("to fit")
        office.at(page, ORDERS)
        page.check(f"tr:has([href*='{office.uuids['captured']}']) .action-select")
        expect(page.locator("[data-ticked]")).to_have_text("1 ticked, 0 fit")
        expect(page.locator(".list-actions button:has-text('Cancel')")).to_be_disabled()
        page.check(f"tr:has([href*='{office.uuids['to fit']}']) .action-select")
        expect(page.locator("[data-ticked]")).to_have_text("2 ticked, 1 fits")
        expect(page.locator(".list-actions button:has-text('Cancel')")).to_be_enabled()

    def test_filters_have_the_same_words_as_the_badges(self, office: Office, page: Page) -> None:
        office.at(page, ORDERS)
        page.click("summary:has-text('Filters')")
        page.click("nav[aria-label=Filters] a:text-is('Captured')")
        expect(page.locator("tbody .badge").first).to_have_text("Captured")
        assert "status__exact=captured" in page.url


class TestThePage:
    @pytest.mark.long
    def test_updates_itself_and_keeps_the_focus(self, office: Office, page: Page) -> None:
        opener = verb(page)
        page.focus(opener)
        office.leave_in_doubt()
        expect(page.locator("h3:has-text('Capture, NF-')").first).to_be_visible()
        expect(page.locator("#at .by-script")).to_be_visible()
        expect(page.locator(opener)).to_be_focused()

    @pytest.mark.long
    def test_sends_no_requests_while_it_is_hidden(self, page: Page) -> None:
        page.evaluate(HIDE)
        page.wait_for_timeout(EVERY + 1_500)
        assert page.evaluate("window.asked") is None

    def test_can_look_up_an_operation_in_doubt_immediately(self, office: Office, page: Page) -> None:
        office.leave_in_doubt()
        office.at(page, PAGE)
        page.click("button:has-text('Look it up now') >> nth=0")
        expect(page.locator("main > .notice").first).to_be_visible()
        assert page.url.endswith(PAGE)

    @pytest.mark.parametrize("path", ["/admin/", PAGE, "/admin/find?q=4242", ORDERS, f"{ORDERS}{{}}/change/"])
    @pytest.mark.parametrize("width", [375, 1280])
    def test_fits_text_of_twice_the_size(self, office: Office, page: Page, path: str, width: int) -> None:
        page.set_viewport_size({"width": width, "height": 812})
        office.fail_endpoint()
        office.at(page, path.format(office.uuids["failed"]))
        page.evaluate("document.documentElement.style.fontSize = '200%'")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


class TestTheList:
    def test_counts_ticked_rows_and_enables_its_actions_only_then(self, office: Office, page: Page) -> None:
        office.at(page, "/admin/payments/discrepancy/?state=open")
        button = page.locator("button:has-text('Close with a note')")
        expect(button).to_be_disabled()
        expect(page.locator("[data-ticked]")).to_have_text("Tick discrepancies first")
        page.locator(".action-select").first.check()
        expect(page.locator("[data-ticked]")).to_have_text("1 ticked")
        button.click()
        expect(page.locator("h1")).to_have_text("Close this discrepancy?")

    def test_can_be_acted_on_without_script(self, office: Office, open_page: Callable[..., Page]) -> None:
        page = office.sign_in(open_page(java_script_enabled=False))
        office.at(page, "/admin/payments/discrepancy/?state=open")
        expect(page.locator("[data-ticked]")).to_have_text("Tick discrepancies first")
        page.locator(".action-select").first.check()
        page.click("button:has-text('Close with a note')")
        expect(page.locator("h1")).to_have_text("Close this discrepancy?")
