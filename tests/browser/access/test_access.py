"""Accessibility of the main pages: screen reader, keyboard, colours, motion, 400 % zoom, and text spacing."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.access import checks, walk
from tests.browser.access.tree import reading
from tests.journeys import receiver
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
PORTAL = ("home", "checkouts", "checkout", "webhooks")
Found = dict[str, dict[str, list[str]]]

# The text that a screen reader reads on each page, without the parts that all pages share (see PAGE). The
# first two lines are the banner at the top of the page.
READ = {
    "phone": """
text: Acme Tickets Order {order}
text: {money}
region "Your order"
  heading 2 "Your order"
  text: {date}, {time}, London time
  list
    listitem
      text: Standing ticket, Blue Room {money}
      text: 4 × {money}
    listitem
      text: Booking fee {money}
      text: 4 × {money}
    listitem: Early-bird discount −{money}
  text: Total {money}
list "Steps"
  listitem [current]: 1 Phone
  listitem: 2 Split
  listitem: 3 Pay
heading 1 "Your mobile number"
form
  text: Sign in with a code we text you. No account, no password.
  textbox [required] "Your mobile number" (UK number. For another country, start with + and the country code.)
  text: UK number. For another country, start with + and the country code.
  button "Text me a code"
form
  button "Back to Acme Tickets"
""",
    "code": """
text: Acme Tickets Order {order}
text: {money}
region "Your order"
  group
    summary "Standing ticket, Blue Room Show order"
list "Steps"
  listitem [current]: 1 Phone
  listitem: 2 Split
  listitem: 3 Pay
heading 1 "Enter the 6-digit code"
form
  text
    text: The code is for {number}.
    link "Change number"
  textbox [required] "Enter the 6-digit code" (Works until {time}.)
  text: Works until {time}.
  text: TEST No text was sent. Your code is {code}.
  checkbox "Remember me here for 30 days" (You won’t need a code next time on this device. Don’t tick this if \
others use it.)
  text: You won’t need a code next time on this device. Don’t tick this if others use it.
  button "Continue"
text: You can ask for a new code in {time}
form
  button "Back to Acme Tickets"
""",
    "split": """
text: Acme Tickets Order {order}
text: {money}
region "Your order"
  group
    summary "Standing ticket, Blue Room Show order"
list "Steps"
  listitem: Done: Phone
  listitem [current]: 2 Split
  listitem: 3 Pay
heading 1 "Who’s in on this?"
form
  button "All mine Pay {money}"
  group "Or share it with your mates"
    legend: Or share it with your mates
    radio "Equally" (Choose how many people. Each mate gets a link.)
    text: Choose how many people. Each mate gets a link.
    radio [checked] "Different amounts" (Choose who pays what.)
    text: Choose who pays what.
    radio "By item" (Each pays for what’s theirs.)
    text: Each pays for what’s theirs.
    list
      listitem
        label: Your name your mates can see this
        textbox [required] "Your name your mates can see this"
        text: {money} The rest
      listitem
        label: Name for share 2 (optional)
        textbox "Name for share 2 (optional)"
        label: Amount of share 2
        textbox "Amount of share 2"
      listitem
        label: Name for share 3 (optional)
        textbox "Name for share 3 (optional)"
        label: Amount of share 3
        textbox "Amount of share 3"
    button "Add a mate"
    status [live=polite]: Adds up {money} of {money}
    heading 2 "When do you pay?"
    button "Get everyone in first"
    text: Each mate’s share is held on their own card. You pay when you’re ready, by {time} at the latest. \
Once Acme Tickets confirms, we take your mates’ shares. If you don’t pay, every hold is released.
    button "Pay now, collect later"
    text: The whole {money} is held on your card today. \
When a mate pays, their share goes back to your card. If a mate never pays, you cover their share.
form
  button "Back to Acme Tickets"
form
  button "Not you?"
""",
    "card": """
text: Acme Tickets Order {order}
text: {money}
region "Your order"
  group
    summary "Standing ticket, Blue Room Show order"
list "Steps"
  listitem: Done: Phone
  listitem: Done: Split
  listitem [current]: 3 Pay
heading 1 "Pay by card"
form
  group "Card form by Sandbox Bank"
    legend: Card form by Sandbox Bank
    label: Card number
    textbox [required] "Card number"
    label: Expiry, MM/YY
    textbox [required] "Expiry, MM/YY"
    label: Security code
    textbox [required] "Security code"
  text
    button "Use test card"
  terms
    term: Held on your card today
    definition: {money}
    term: Goes back as your 2 mates pay
    definition: {money}
    term: Your own share
    definition: {money}
  text: If a mate never pays, you cover their share.
  button "Pay {money} (test)"
text: Your card details go to the bank. Acme Tickets never sees them.
text
  link "Change who pays"
group
  summary "Test cards Show"
form
  button "Back to Acme Tickets"
form
  button "Not you?"
""",
    "held": """
text: Acme Tickets Order {order}
text: {money}
region "Your order"
  group
    summary "Standing ticket, Blue Room Show order"
heading 1 "Held, not taken yet"
text: {money} is set aside on your Visa ending 4242. Acme Tickets is checking your order.
list "Where the money is"
  listitem: Your card
  listitem [current]: {money} On hold
  listitem: Acme Tickets
text: {time} left for Acme Tickets to confirm
progressbar "Time left to confirm"
text: If they don’t confirm by {time}, the hold ends automatically and nothing is taken.
text
  text: This page updates automatically. You can close it: the same link always shows the latest status.
  link "Check now"
region "The bill, by person"
  heading 2 "The bill, by person"
  list
    listitem: Lea {money} You
    listitem: Finn {money} Starts when confirmed
    listitem: Priya {money} Starts when confirmed
  text: Adds up {money}
status [live=polite]
form
  button "Sign out"
""",
    "bill": """
text: Acme Tickets Order {order}
text: {money}
region "Your order"
  group
    summary "Standing ticket, Blue Room Show order"
text: Confirmed and paid Acme Tickets has the whole {money}.
heading 1 "You’re covering {money} for now"
text: Your own share is {money}. When a mate pays, their share goes back to your Visa ending 4242.
terms
  term: Yours
  definition: {money}
  term: Still due
  definition: {money}
  term: Mates paid
  definition: {money}
region "One link for everyone"
  heading 2 "One link for everyone"
  text: Lea · Standing ticket, Blue Room · {money} each {link}
  link "Show QR code"
  button "Copy the link"
region "The bill, by person"
  heading 2 "The bill, by person"
  list
    listitem: Lea {money} You
    listitem
      text: Finn {money}
      group
        summary "Not paid yet More : Finn"
    listitem
      text: Priya {money}
      group
        summary "Not paid yet More : Priya"
  text
    link "Add a mate"
  text: Adds up {money}
  text: This page updates automatically. Links work until {date}, {time}.
region "Receipt"
  heading 2 "Receipt"
  terms
    term: Paid to
    definition: Acme Tickets
    term: For
    definition: 4 × Standing ticket, Blue Room Order {order}
    term: When
    definition: {date}, {time} London time (GMT)
    term: With
    definition: Visa ending 4242
  text: Paid {money}
  link "Back to Acme Tickets"
  button "Print"
  form
    button "Text it to {number}"
region "Hear from Acme Tickets?"
  heading 2 "Hear from Acme Tickets?"
  form
    checkbox "Acme Tickets may send me offers by e‑mail and text. I can stop any time."
    text: This is optional.
status [live=polite]
form
  button "Sign out"
""",
    "mate": """
text: Acme Tickets Lea’s order {order}
text: {money}
region "Lea’s order"
  group
    summary "Standing ticket, Blue Room Show order"
heading 1 "Lea is asking you for {money}"
text: Lea has paid Acme Tickets in full for Standing ticket, Blue Room. Your share goes back to Lea’s card.
form
  label: Your mobile number
  textbox [required] "Your mobile number" (UK number. For another country, start with + and the country code. \
We don’t show your number to Lea.)
  text: UK number. For another country, start with + and the country code. We don’t show your number to Lea.
  button "Text me a code"
text: Open until {date}, {time}. You are not charged until you pay on a later page.
form
  button "I’m not paying this"
region "Hear from Acme Tickets?"
  heading 2 "Hear from Acme Tickets?"
  form
    checkbox "Acme Tickets may send me offers by e‑mail and text. I can stop any time."
    text: This is optional.
""",
    "group": """
text: Acme Tickets Lea’s order {order}
text: {money} each
region "Lea’s order"
  group
    summary "Standing ticket, Blue Room Show order"
heading 1 "Lea paid. Which share is yours?"
text: Acme Tickets has the whole {money}. Your share goes back to Lea’s card.
heading 2 "Free shares"
list
  listitem
    form
      button "Finn {money}"
  listitem
    form
      button "Priya {money}"
text: You are not charged until you pay on a later page. Open until {date}, {time}.
""",
}
PAGE = """complementary "Test mode": TEST No real money moves.
banner
{band}
main
{main}
contentinfo
  form "Language"
    button "Deutsch"
    button "Español"
    button "Français"
    button "Italiano"
    button "Nederlands\""""


@pytest.fixture(scope="module")
def found(service: Service, browser: Browser) -> Iterator[Found]:
    """Yield, for each page, the text that a screen reader reads, and the faults that each check finds."""
    results: Found = {}

    def look(name: str, page: Page) -> None:
        page.wait_for_load_state("load")
        found = {check: run(page) for check, run in checks.ALL.items()}
        results[name] = found | {"reading": reading(page).splitlines()}

    walk.payers(service, browser, look)
    with receiver.listening() as endpoint:
        walk.portal(service, browser, endpoint, look)
    yield results
    service.prove_ledger()


@pytest.mark.rule("access.reading")
@pytest.mark.parametrize("name", READ)
def test_screen_readers_read_the_page_in_the_expected_order(found: Found, name: str) -> None:
    lines = [f"  {line}" for line in READ[name].strip().splitlines()]
    page = PAGE.format(band="\n".join(lines[:2]), main="\n".join(lines[2:]))
    assert found[name]["reading"] == page.splitlines()


@pytest.mark.rule("access.colours")
@pytest.mark.parametrize("name", [*READ, *PORTAL])
def test_forced_colours_hide_no_information(found: Found, name: str) -> None:
    assert found[name]["colours"] == []


@pytest.mark.rule("access.motion")
@pytest.mark.parametrize("name", [*READ, *PORTAL])
def test_nothing_moves_with_reduced_motion(found: Found, name: str) -> None:
    assert found[name]["motion"] == []


@pytest.mark.rule("access.zoom")
@pytest.mark.parametrize("name", [*READ, *PORTAL])
def test_text_at_four_times_the_size_fits_the_page(found: Found, name: str) -> None:
    assert found[name]["reflow"] == []


@pytest.mark.rule("access.spacing")
@pytest.mark.parametrize("name", [*READ, *PORTAL])
def test_text_with_wider_spacing_fits_the_page(found: Found, name: str) -> None:
    assert found[name]["spacing"] == []
