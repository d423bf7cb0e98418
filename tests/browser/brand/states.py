"""Gallery states: payers' pages for merchants that have a logo and a shop address."""

from collections.abc import Callable

from playwright.sync_api import Page

from tests.browser.gallery import Stage, at, offers

BRAND = """
from hosted_page.logo import storage
from payments.models import Merchant
from portal.models import ApiClient
from tests.hosted_page.logo import files
merchant = ApiClient.objects.get(client_id="{client_id}").merchant_id
storage.save_logo(merchant, storage.read_upload(files.word("{words}", "{colour}")))
shop = "https://acme.example/"
ways = dict(shop_url=shop, terms_url=f"{{shop}}terms", privacy_url=f"{{shop}}privacy", support_url=f"{{shop}}help")
Merchant.objects.filter(pk=merchant).update(brand_colour="{brand}", **ways)
"""


def brand(stage: Stage, words: str, colour: str, brand: str = "#A61C59") -> Stage:
    """Give the stage's merchant shop URLs, a brand colour, and a logo with these words in `colour`."""
    facts = {"words": words, "colour": colour, "brand": brand}
    client_id = stage.merchant.credentials.client_id
    stage.service.command("shell", "-c", BRAND.format(client_id=client_id, **facts))
    return stage


def _said_no(stage: Stage) -> Page:
    page = brand(stage, "A", "white", "#F5D90A").mate_at_pay_link()
    page.click(".leave button")
    return at(page, "declined")


def _offers(stage: Stage) -> Page:
    page = offers(brand(stage, "A", "white", "#1F4596"))
    page.check("#opt-in")
    return page


STATES: dict[str, Callable[[Stage], Page]] = {
    "36 phone, a white logo": lambda stage: brand(stage, "ACME", "white").come(stage.order()),
    "36 confirmed, a black logo": lambda stage: brand(stage, "A", "black", "#1F4596").confirmed(),
    "36 the bill, a wide logo": lambda stage: brand(stage, "NIGHT FERRIES", "#A61C59").confirmed(mates=2),
    "36 mate said no, a way to the shop": _said_no,
    "36 offers, ticked, a way to the shop": _offers,
}
