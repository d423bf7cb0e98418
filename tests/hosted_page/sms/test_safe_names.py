import pytest

from hosted_page.sms import safe_names
from payments.models import Merchant


@pytest.mark.rule("sms.invitation")
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Acme Tickets", "Acme Tickets"),
        ("Crêperie d'Été", "Crêperie d'Été"),
        ("हिन्दी दुकान", "हिन्दी दुकान"),
        ("Ａｃｍｅ", "Acme"),
        ("Your bank: log in at evil.co/x", "Your bank log in at evilcox"),
        ("Ring +44 7700 900123 now", "Ring now"),
        ("Call ①② ٣٤ ⅔ ５５", "Call"),
        ("evil。co／x\u2024y", "evilcoxy"),
        ("Shop\n\tTwo\u202eowt\x00", "Shop Twoowt"),
        ("A" * 29 + " Bcd", "A" * 29),
        ("24/7", "the shop"),
    ],
)
def test_a_name_loses_links_numbers_and_special_characters(name: str, shown: str) -> None:
    assert safe_names.safe_shop_name(Merchant(name=name)) == shown
