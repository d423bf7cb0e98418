"""The script inventory lists exactly the scripts that the payment pages load."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.template.backends.jinja2 import Template
from django.test import Client
from jinja2 import Environment, nodes

from checkout import captures
from checkout.models import Checkout, GroupLink
from config.lib.web import page_templates
from config.lib.web.static_files import HTMX
from hosted_page.opt_in import link
from hosted_page.page_security import inventory, page_content
from hosted_page.sms import outbox, stopped_numbers
from payments import safe_answers
from payments.models import Merchant
from payments.providers.stripe.adapter import StripeProvider
from tests import factories
from tests.factories import CAUSE
from tests.hosted_page.browsers import ASKS, Mate, Payer, words
from tests.hosted_page.group.test_group_page import Guest

pytestmark = [pytest.mark.django_db, pytest.mark.rule("card_page.inventory")]
FRAME = "hosted_page/frame.html"
Rendered = dict[str, list[str]]


def named_in(environment: Environment, name: str) -> Iterator[str]:
    """Yield all scripts that a template, its parents and its included templates can load."""
    assert environment.loader
    text = environment.loader.get_source(environment, name)[0]
    tree = environment.parse(text)
    for call in tree.find_all(nodes.Call):
        match call:
            case nodes.Call(node=nodes.Name(name="script"), args=[nodes.Const(value=script)]):
                yield script
            case nodes.Call(node=nodes.Name(name="htmx_script")):
                yield HTMX
    yield from ([inventory.STRIPE] if '<script src="{{ stripe_script }}"' in text else [])
    for part in templates_in(tree, nodes.Extends, nodes.Include):
        yield from named_in(environment, part)


def templates_in(tree: nodes.Template, *kinds: type[nodes.Node]) -> Iterator[str]:
    """Yield the templates that a template names in statements of these kinds: `extends` or `include`."""
    for part in tree.find_all(kinds):
        match part:
            case (
                nodes.Extends(template=nodes.Const(value=name))
                | nodes.Include(template=nodes.Const(value=name))
            ):
                yield name


def extends_frame(environment: Environment, name: str) -> bool:
    assert environment.loader
    tree = environment.parse(environment.loader.get_source(environment, name)[0])
    parents = templates_in(tree, nodes.Extends)
    return name == FRAME or any(extends_frame(environment, parent) for parent in parents)


def is_parent(environment: Environment, name: str) -> bool:
    texts = (path.read_text() for path in Path("templates").rglob("*.html"))
    return any(f'{{% extends "{name}" %}}' in text for text in texts)


@pytest.fixture(scope="module")
def environment() -> Environment:
    return page_templates.environment()


def test_the_inventory_covers_all_payers_templates(environment: Environment) -> None:
    pages = {
        name
        for name in environment.list_templates()
        if extends_frame(environment, name) and not is_parent(environment, name)
    }
    assert pages == set(inventory.PAGES)


@pytest.mark.parametrize("page", inventory.PAGES)
def test_table_has_each_script_that_a_template_can_load(environment: Environment, page: str) -> None:
    assert {script.name for script in inventory.scripts_of(page)} == set(named_in(environment, page))


def test_each_row_names_an_owner_a_reason_and_existing_pages() -> None:
    for script in inventory.SCRIPTS:
        assert script.owner and script.reason.endswith(".") and len(script.reason) > 20
        assert script.pages and set(script.pages) <= set(inventory.PAGES)
    assert len({script.name for script in inventory.SCRIPTS}) == len(inventory.SCRIPTS)


def test_documentation_shows_the_table() -> None:
    assert "\n".join(inventory.markdown_table()) in Path("docs/security.md").read_text()


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> Rendered:
    """Return a dict that collects the HTML of every rendered page by the name of its template."""
    pages: Rendered = defaultdict(list)
    render = Template.render

    def keep(template: Template, *arguments: Any, **more: Any) -> Any:
        page = render(template, *arguments, **more)
        pages[Path(template.origin.name).relative_to(settings.BASE_DIR / "templates").as_posix()].append(page)
        return page

    monkeypatch.setattr(Template, "render", keep)
    return pages


def names_of(page: str) -> set[str]:
    """Return the inventory's names for the scripts of a page. Fail if the page contains any other code."""
    content = page_content.read_content(page)
    assert content.other == []
    names = set()
    for script in content.scripts:
        path = urlsplit(script.address).path
        is_stripes = script.address == settings.STRIPE_SCRIPT
        names.add(inventory.STRIPE if is_stripes else path.removeprefix("/static/"))
    return names


def walk_of_lead(lea: Payer) -> None:
    lea.get()
    lea.post("/phone", phone="07700 900123")
    lea.get()
    lea.post("/code", code=lea.code(), remember="yes")
    other = Payer(factories.checkout(lea.checkout.merchant))
    other.client = lea.client
    # This request renders the page for a remembered browser.
    other.get()
    lea.get("/split")
    lea.post("/split", split="own", name=["Finn", "Amy"], amount=["20", "30"], your_name="Lea")
    bank = lea.get("/card")["Location"]
    lea.client.get(bank)
    back = lea.client.post(bank, {"number": ASKS, "expiry": "08 / 49", "code": "123"})
    question = lea.client.get(back["Location"])["Location"]
    lea.client.get(question)
    lea.get()
    lea.client.post(question, {"answer": "confirm"})
    lea.get("/confirmed")
    lea.get()


def walk_of_group(lea: Payer) -> None:
    captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
    lea.get()
    Client().get("/pay", {"id": str(lea.checkout.pk), "sign_in": "1"})
    guest, path = Client(), f"/pay/g/{GroupLink.objects.get().token}"
    guest.get(path)
    guest.get(f"{path}/qr")
    mate = Mate(lea.checkout.payment_requests.get(position=2))
    mate.get()
    mate.pay()
    mate.get()


def walk_elsewhere(merchant: Merchant, lea: Payer) -> None:
    offers = urlsplit(link.url(lea.checkout, "app")).path
    Client().get(offers)
    Merchant.objects.filter(pk=merchant.pk).update(opt_in_enabled=True)
    Client().get(offers)
    known = Payer(factories.checkout(merchant, customer={"phone": "+447700900999"}))
    known.get()
    known.post("/prefilled")
    # This browser cannot request a code yet, so the request renders the page that asks the payer to wait.
    Payer(known.checkout).post("/prefilled")
    Client().get(
        f"/pay/{stopped_numbers.stop_link(outbox.number_digest('+447700900456')).partition('/pay/')[2]}"
    )


def wait_for_mates(lea: Payer) -> None:
    lea.sign_in("07700 900888")
    split = {"split": "equal", "people": "2", "your_name": "Lea", "when": "first"}
    lea.client.post(f"/pay/split?id={lea.checkout.pk}", split)
    assert "No one else is in yet" in words(lea.get())


def take_items(lea: Payer) -> None:
    lea.sign_in("07700 900889")
    split = {"split": "item", "your_name": "Lea", "name": "", "units-0": "1", "when": "first"}
    lea.client.post(f"/pay/split?id={lea.checkout.pk}", split)
    assert "Which items are yours?" in words(Guest(lea.checkout).get())


def at_stripe(lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
    lea.sign_in("07700 900777")
    lea.post("/split", split="all")
    monkeypatch.setattr(safe_answers, "card_page", StripeProvider().open_card_form)
    assert lea.get("/card").status_code == 200


def test_rendered_pages_load_the_scripts_of_the_table(
    acme: Merchant, unpaid: Checkout, rendered: Rendered, monkeypatch: pytest.MonkeyPatch
) -> None:
    lea = Payer(unpaid)
    walk_of_lead(lea)
    walk_of_group(lea)
    walk_elsewhere(acme, lea)
    wait_for_mates(Payer(factories.checkout(acme)))
    take_items(Payer(factories.checkout(acme)))
    at_stripe(Payer(factories.checkout(acme)), monkeypatch)
    pages = {name: found for name, found in rendered.items() if name in inventory.PAGES}
    assert set(pages) == set(inventory.PAGES)
    for page, shown in pages.items():
        loaded = {name for text in shown for name in names_of(text)}
        assert loaded == {script.name for script in inventory.scripts_of(page)}, page
