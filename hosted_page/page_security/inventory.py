"""The script inventory of the payment pages: each script with its owner, its purpose and its pages.

A payment page loads only scripts from this inventory, and each script is used on at least one page. Rule
card_page.inventory.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings

from config.lib.web.static_files import HTMX

OUR_OWNER = "this service"
# The payment pages, by template: all pages that a payer sees from the shop's link to the receipt.
PAGES = {
    "hosted_page/phone.html": "Phone number",
    "hosted_page/prefilled.html": "Phone number from the shop",
    "hosted_page/known.html": "Remembered phone number",
    "hosted_page/returning.html": "Sign in again",
    "hosted_page/code.html": "Code",
    "hosted_page/split.html": "Split",
    "hosted_page/share.html": "A mate's share",
    "hosted_page/group.html": "Group link",
    "hosted_page/group_qr.html": "QR code of the group link",
    "hosted_page/collect.html": "Who is in, before the lead pays",
    "hosted_page/bill.html": "Group bill",
    "hosted_page/status.html": "Status and receipt",
    "hosted_page/message.html": "Message",
    "hosted_page/opt_in.html": "Marketing box",
    "hosted_page/stop.html": "Stop text messages",
    "bank/card.html": "Card form of the sandbox bank",
    "bank/challenge.html": "Question of the sandbox bank",
    "stripe/card.html": "Card form of Stripe",
}
CARD_PAGES = ("bank/card.html", "stripe/card.html")
STRIPE = "Stripe.js"


@dataclass(frozen=True)
class PageScript:
    """A script on the payment pages. `name` is its static file, or STRIPE for the script from Stripe."""

    name: str
    owner: str
    reason: str
    pages: tuple[str, ...]

    @property
    def is_ours(self) -> bool:
        """Whether this service delivers the script. If so, the page contains the script's integrity hash."""
        return self.name != STRIPE


SCRIPTS = (
    PageScript(
        "js/frame.js",
        OUR_OWNER,
        "Prevents Back from sending a form again, and names the time zone for a payer in another one.",
        tuple(PAGES),
    ),
    PageScript(
        "js/code.js",
        OUR_OWNER,
        "Fills in the code from the text message, and counts the seconds until another one can be sent.",
        ("hosted_page/code.html", "hosted_page/prefilled.html"),
    ),
    PageScript(
        "js/split.js",
        OUR_OWNER,
        "Shows what each person pays while the lead changes the split.",
        ("hosted_page/split.html",),
    ),
    PageScript(
        "js/units.js",
        OUR_OWNER,
        "Adds the buttons to a number of items.",
        ("hosted_page/split.html", "hosted_page/group.html"),
    ),
    PageScript(
        "js/group_items.js",
        OUR_OWNER,
        "Shows what the chosen items cost.",
        ("hosted_page/group.html",),
    ),
    PageScript(
        "js/session.js",
        OUR_OWNER,
        "Warns the payer before the sign-in ends, and extends it when the payer asks for that.",
        ("hosted_page/split.html", "hosted_page/bill.html", "hosted_page/status.html", *CARD_PAGES),
    ),
    PageScript(
        "js/card.js",
        OUR_OWNER,
        "Groups the digits of a test card, shows its brand and mistakes, and prevents a second submission.",
        ("bank/card.html",),
    ),
    PageScript(
        STRIPE,
        "Stripe",
        "Draws Stripe's card fields in Stripe's own frame, so that card data goes to Stripe only.",
        ("stripe/card.html",),
    ),
    PageScript(
        "js/stripe_card.js",
        OUR_OWNER,
        "Starts Stripe's card fields, and sends the browser back with the token that Stripe returns.",
        ("stripe/card.html",),
    ),
    PageScript(
        HTMX,
        "htmx, a copy in the package django-htmx",
        "Replaces the changing parts of the page.",
        ("hosted_page/status.html", "hosted_page/collect.html"),
    ),
    PageScript(
        "js/status.js",
        OUR_OWNER,
        "Counts down the hold, reads changes aloud, and sends the browser back to the shop.",
        ("hosted_page/status.html", "hosted_page/collect.html"),
    ),
    PageScript(
        "js/bill.js",
        OUR_OWNER,
        "Updates the group bill while the lead looks at it.",
        ("hosted_page/bill.html",),
    ),
    PageScript(
        "js/links.js",
        OUR_OWNER,
        "Shares or copies the links to mates' shares.",
        ("hosted_page/bill.html", "hosted_page/collect.html"),
    ),
    PageScript(
        "js/group.js",
        OUR_OWNER,
        "Loads the group page again once something on it has changed.",
        ("hosted_page/group.html",),
    ),
    PageScript(
        "js/table.js",
        OUR_OWNER,
        "Keeps the screen on while mates scan the QR code, and shows who has scanned it.",
        ("hosted_page/group_qr.html",),
    ),
)


def scripts_of(page: str) -> list[PageScript]:
    """Return the scripts that the page with this template can load."""
    return [script for script in SCRIPTS if page in script.pages]


def _markdown_address(script: PageScript) -> str:
    return f"`/static/{script.name}`" if script.is_ours else f"`{settings.STRIPE_SCRIPT}`"


def markdown_table() -> Iterable[str]:
    """Return the lines of a Markdown table with the inventory. The table is in docs/security.md."""
    yield "| Script | Owner | Why it is there | Pages | Integrity |"
    yield "|---|---|---|---|---|"
    for script in SCRIPTS:
        names = (PAGES[page] for page in script.pages)
        pages = "all" if len(script.pages) == len(PAGES) else ", ".join(names)
        integrity = "`sha256`" if script.is_ours else "none: Stripe changes this script without notice"
        yield f"| {_markdown_address(script)} | {script.owner} | {script.reason} | {pages} | {integrity} |"
