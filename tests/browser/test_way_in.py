"""A payer's steps to the page of a held order: what the payer types and taps, and what happens after mistakes."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests import factories
from tests.browser.order import Order
from tests.browser.test_buying import GOOD, heading
from tests.browser.test_coming_back import enter_code, sign_in
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
READS_TEXTS = """
window.OTPCredential = class {};
navigator.credentials.get = asked => new Promise(done => {
  window.asked = asked;
  window.comes = code => done({code});
});
"""
TELLS = """
addEventListener("change", () => window.did("field"), true);
addEventListener("click", event => event.detail && window.did("tap"), true);
"""


def fill_in_card(page: Page, number: str = GOOD) -> None:
    page.fill("#number", number)
    page.fill("#expiry", "08 / 49")
    page.fill("[name=code]", "123")


def test_a_mistyped_card_number_is_not_sent(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    sign_in(page, "07700 900701")
    page.click(".all-mine")
    fill_in_card(page, "4242 4242 4242 4241")
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.method))
    page.click("#pay")
    expect(page.locator("#number-error")).to_contain_text("not right")
    expect(page.locator("#number")).to_be_focused()
    expect(page.locator("#number")).to_have_value("4242 4242 4242 4241")
    expect(page.locator("[name=code]")).to_have_value("123")
    page.click("#pay")  # a second tap does not send the number again
    assert "POST" not in posts
    page.fill("#number", GOOD)
    expect(page.locator("#number-error")).to_be_hidden()
    expect(page.locator("#number")).not_to_have_attribute("aria-invalid", "true")
    page.click("#pay")
    heading(page, "Held, not taken yet")


def test_a_code_with_too_few_digits_is_explained_below_the_field(
    order: Order, open_page: Callable[..., Page]
) -> None:
    page = open_page(may_fail=True)  # the wrong code is answered with status 422
    page.goto(order.url)
    page.fill("#phone", "07700 900712")
    page.click("button.button-main")
    page.fill("#code", "12")
    page.click("button.button-main")
    expect(page.locator("#code-error")).to_have_text("The code has 6 digits.")
    expect(page.locator("#code")).to_be_focused()


def test_all_errors_of_a_card_form_are_shown_together(
    order: Order, open_page: Callable[..., Page], accessible: Callable[[Page], None]
) -> None:
    page = open_page()
    page.goto(order.url)
    sign_in(page, "07700 900710")
    page.click(".all-mine")
    page.fill("#number", GOOD)
    page.fill("#expiry", "13 / 49")
    page.click("#pay")
    expect(page.locator("#number-error")).to_be_hidden()
    expect(page.locator("#expiry-error")).to_have_text("Enter the date as on the card, MM/YY.")
    expect(page.locator("#code-error")).to_have_text("Enter the security code.")
    expect(page.locator("#expiry")).to_be_focused()
    accessible(page)
    fill_in_card(page)
    page.click("#pay")
    heading(page, "Held, not taken yet")


def test_a_code_that_the_phone_reads_from_the_text_signs_in(
    order: Order, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    page.add_init_script(READS_TEXTS)
    page.goto(order.url)
    page.fill("#phone", "07700 900702")
    page.click("button.button-main")
    heading(page, "Enter the 6-digit code")
    page.wait_for_function("window.asked")
    assert page.evaluate("window.asked.otp.transport") == ["sms"]
    page.evaluate("code => window.comes(code)", page.inner_text(".notice code"))
    heading(page, "Who’s in on this?")


def test_a_lead_who_splits_must_enter_a_name_first(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    sign_in(page, "07700 900703")
    expect(page.locator("#continue")).to_be_hidden()
    page.check("#split-equal")
    page.click("#continue")
    expect(page.locator("#your-name")).to_be_focused()
    expect(page.locator("#your-name-error")).to_be_visible()
    page.fill("#your-name", "Lea")
    page.fill("#people", "9")
    expect(page.locator("[name=name]:visible")).to_have_count(0)
    page.click("text=Add names")
    expect(page.locator("[name=name]:visible")).to_have_count(8)
    page.fill("#name-9", "Zoe")
    page.keyboard.press("Enter")
    heading(page, "No one else is in yet")
    page.click("#pay-now")
    expect(page.locator(".held-rows")).to_contain_text("Goes back as your 8 mates pay")


def test_a_remembered_payer_who_pays_everything_needs_three_fields_and_three_taps(
    order: Order, open_page: Callable[..., Page], accessible: Callable[[Page], None]
) -> None:
    page = open_page()
    page.goto(order.url)
    page.fill("#phone", "07700 900704")
    page.click("button.button-main")
    heading(page, "Enter the 6-digit code")
    expect(page.locator("#remember")).not_to_be_checked()
    page.check("#remember")
    page.fill("#code", page.inner_text(".notice code"))
    page.click("button.button-main")
    heading(page, "Who’s in on this?")
    page.goto(Order(order.service, order.merchant, order.merchant.create()).url)
    heading(page, "Is this still you?")
    accessible(page)
    done: list[str] = []

    def did(action: str) -> None:
        done.append(action)

    page.expose_function("did", did)
    page.add_init_script(TELLS)
    page.reload()
    page.click("text=Continue as •••• 0704")
    page.click("text=All mine")
    fill_in_card(page)
    page.click("#pay")
    heading(page, "Held, not taken yet")
    assert (done.count("field"), done.count("tap")) == (3, 3)


@pytest.mark.rule("prefill.code")
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_phone_number_from_the_shop_saves_the_payer_one_field(
    order: Order, open_page: Callable[..., Page], accessible: Callable[[Page], None], script: bool
) -> None:
    """If the shop sends no phone number, the payer fills in five fields: number, code, and three card fields."""
    number = "07700 900708" if script else "07700 900709"
    customer = {"phone": number, "name": "Lea Fontaine", "locale": "en"}
    page = open_page(java_script_enabled=script)
    done: list[str] = []

    def did(action: str) -> None:
        done.append(action)

    page.expose_function("did", did)
    page.add_init_script(TELLS)
    page.goto(Order(order.service, order.merchant, order.merchant.create(customer=customer)).url)
    heading(page, "Is this your number?")
    if script:
        accessible(page)
    expect(page.locator("main")).to_contain_text(f"•••• {number[-4:]}")
    page.click("text=Text me a code")
    enter_code(page)
    heading(page, "Who’s in on this?")
    expect(page.locator("#your-name")).to_have_value("Lea Fontaine")
    page.click("text=All mine")
    fill_in_card(page)
    page.click("#pay")
    heading(page, "Held, not taken yet")
    if script:
        assert (done.count("field"), done.count("tap")) == (4, 4)


@pytest.mark.rule("sign_in.said")
def test_an_ending_sign_in_is_announced_and_extended_and_typed_text_is_kept(
    order: Order, open_page: Callable[..., Page], accessible: Callable[[Page], None]
) -> None:
    page = open_page()
    page.clock.install()
    page.goto(order.url)
    sign_in(page, "07700 900705")
    heading(page, "Who’s in on this?")
    page.check("#split-equal")
    page.fill("#your-name", "Lea")
    page.fill("#name-2", "Finn")
    expect(page.locator(".stay")).to_be_hidden()

    def put_off() -> None:
        order.sign_in_grows_older(page, 14 * 60)
        page.clock.fast_forward("14:00")
        expect(page.locator(".stay")).to_contain_text("You are signed in until")
        with page.expect_response("**/pay/stay?*") as answered:
            page.click("text=Stay signed in")
        assert answered.value.status == 200
        expect(page.locator(".stay")).to_be_hidden()

    put_off()
    put_off()  # the sign-in was extended, so it lasts longer than 15 minutes
    order.sign_in_grows_older(page, 15 * 60 + 1)
    page.click("#continue")
    heading(page, "Your mobile number")
    expect(page.locator("[role=alert]")).to_contain_text("You are signed out")
    accessible(page)
    sign_in(page, "07700 900705")
    heading(page, "Who’s in on this?")
    expect(page.locator("#split-equal")).to_be_checked()
    expect(page.locator("#your-name")).to_have_value("Lea")
    expect(page.locator("#name-2")).to_have_value("Finn")
    page.click("#continue")
    page.fill("#number", "4242")
    put_off()
    expect(page.locator("#number")).to_have_value("4242")


@pytest.mark.rule("pay.back")
def test_back_after_paying_shows_no_card_form(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page(java_script_enabled=False)
    page.goto(order.url)
    sign_in(page, "07700 900706")
    page.click(".all-mine")
    fill_in_card(page)
    page.click("#pay")
    heading(page, "Held, not taken yet")
    for _ in range(2):
        page.go_back()
        heading(page, "Held, not taken yet")
        expect(page.locator("#number")).to_have_count(0)
    assert order.charges() == ["held"]


SCREEN = 667  # height of a short phone, in pixels
WIDTH = "document.documentElement.scrollWidth"
BAND = "document.querySelector('.band').getBoundingClientRect().height"


@pytest.mark.long
def test_letters_twice_as_large_fit_a_phone_at_every_step(
    order: Order, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    page.add_init_script(
        "addEventListener('DOMContentLoaded', () => document.documentElement.style.fontSize = '200%')"
    )

    def fits() -> None:
        page.wait_for_load_state("load")
        assert page.evaluate(WIDTH) <= 375, page.url
        assert page.evaluate(BAND) <= 0.15 * SCREEN, page.url

    page.goto(order.url)
    fits()
    page.fill("#phone", "07700 900707")
    page.click("button.button-main")
    heading(page, "Enter the 6-digit code")
    page.check("#remember")
    fits()
    page.fill("#code", page.inner_text(".notice code"))
    page.click("button.button-main")
    heading(page, "Who’s in on this?")
    fits()
    for way in ("#split-equal", "#split-own"):
        page.check(way)
        fits()
    page.click(".all-mine")
    heading(page, "Pay by card")
    fits()
    fill_in_card(page)
    page.click("#pay")
    heading(page, "Held, not taken yet")
    fits()
    page.goto(Order(order.service, order.merchant, order.merchant.create()).url)
    heading(page, "Is this still you?")
    fits()


ORDER_ID = "10674455-2026-11-25-120417"
# Returns how many digits of the order number are visible before the ellipsis, and whether the end of the
# number is visible.
READ = """() => {
  const [head, tail] = [...document.querySelectorAll(".band-number")].find(it => it.checkVisibility()).children;
  const band = document.querySelector(".band-merchant small").getBoundingClientRect();
  const digit = tail.getBoundingClientRect().width / tail.textContent.length;
  return {
    digits: Math.floor(head.getBoundingClientRect().width / digit) - 1,
    isEndWhole: tail.getBoundingClientRect().right <= band.right + 1,
    lines: document.querySelector(".band-merchant small").clientHeight / tail.clientHeight,
  };
}"""


@pytest.mark.parametrize(
    ("width", "scale", "digits"), [(320, 100, 4), (375, 100, 4), (375, 200, 3), (320, 200, 2)]
)
def test_a_long_order_number_keeps_its_beginning_and_its_end(
    service: Service, open_page: Callable[..., Page], width: int, scale: int, digits: int
) -> None:
    merchant = service.new_merchant("Acme Tickets")
    asked = merchant.post("checkouts", factories.order(merchant_order_id=ORDER_ID)).json()["data"][
        "checkout_uuid"
    ]
    order = Order(service, merchant, asked)
    page = open_page()
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(order.url)
    page.evaluate(f"document.documentElement.style.fontSize = '{scale}%'")
    read = page.evaluate(READ)
    assert read["digits"] >= digits and read["isEndWhole"] and read["lines"] < 1.6, read
    assert page.locator(".band").aria_snapshot().count(f"Order {ORDER_ID}") == 1, "it is read whole"


def test_a_phone_shows_the_pay_button_and_the_languages_on_one_line(
    order: Order, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    page.goto(order.url)
    tops = page.locator(".foot-language button").evaluate_all(
        "all => all.map(it => it.getBoundingClientRect().top)"
    )
    assert len(tops) == 5 and len(set(tops)) == 1
    sign_in(page, "07700 900711")
    page.click(".all-mine")
    expect(page.locator("#pay")).to_be_in_viewport(ratio=1)
    expect(page.locator(".test-cards code").first).to_be_hidden()
    page.locator(".test-cards > summary").press("Enter")
    expect(page.locator(".test-cards code").first).to_be_visible()
