"""The document's prose: guide.md and generators.md. Their tables are filled in from the code. Rule docs.stripe."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from checkout import states
from checkout.states import Status
from config.lib.web import deprecated
from payments.providers.sandbox.cards import CARDS
from portal.developer_docs import recipes
from webhooks import outbox, retries
from webhooks.api import source_addresses
from webhooks.models import EventType

TAGS = {
    "Token": "Calls without a token. Their responses follow the OAuth RFCs and not the merchant API's "
    "envelopes.",
    "Checkouts": "Create, read, list, capture, cancel and refund checkouts.",
    "Webhooks": "The destination of your events, the events, and the log of their deliveries.",
    "Marketing": "Ask the customers of an order whether they want to hear from you.",
    "Sandbox": "Act as the customer and let time pass, for tests without a browser. These calls exist only "
    "in the sandbox and take no `Idempotency-Key`. The sandbox accepts only test cards, with any expiry in "
    "the future and any security code.",
    "Events": "The events that the service sends to your endpoint, always in the same envelope.",
}
GUIDE = "\n".join(Path(__file__).with_name(name).read_text() for name in ("guide.md", "generators.md"))


def fill_in_values(text: str, document: dict[str, Any]) -> str:
    """Replace the placeholders in a text of the documentation with values from the code."""
    properties = document["components"]["schemas"]["Checkout"]["properties"]
    starts = [str(start) for start in getattr(retries.SCHEDULES[EventType.AUTHORIZED], "starts", ())]
    values = {
        "{base_url}": settings.BASE_URL,
        "{sandbox_url}": settings.BASE_URL if settings.SANDBOX else "<SANDBOX_BASE_URL>",
        "{scopes}": _scope_table(),
        "{moves}": _describe_moves(states.ALLOWED_MOVES),
        "{share_moves}": _describe_moves(states.ALLOWED_SHARE_MOVES),
        "{always}": ", ".join(f"`{name}`" for name, field in properties.items() if "x-states" not in field),
        "{states}": _state_table(properties),
        "{authorized}": f"{', '.join(starts[:-1])} and {starts[-1]}",
        "{attempts}": str(retries.SCHEDULES[EventType.VOIDED].attempts),
        "{unpaid}": str(round(settings.UNPAID_CHECKOUT_LIFETIME.total_seconds() / 60)),
        "{kept}": str(settings.WEBHOOK_RETENTION.days),
        "{cards}": _card_table(),
        "{api_version}": outbox.API_VERSION,
        "{months}": str(deprecated.MONTHS),
        "{deprecated}": deprecated.table_as_text(),
    }
    limits = {f"{{{name}}}": rate.replace("/", " a ") for name, rate in settings.LIMITS.items()}
    for placeholder, value in (values | limits | _webhook_values(document)).items():
        text = text.replace(placeholder, value)
    return text


def _webhook_values(document: dict[str, Any]) -> dict[str, str]:
    urls = {kind: methods["post"]["externalDocs"]["url"] for kind, methods in document["webhooks"].items()}
    links = (f"[`{kind}`]({url.removeprefix(settings.BASE_URL)})" for kind, url in urls.items())
    return {
        "{schemas}": ", ".join(links),
        "{delivery_addresses}": _describe_source_addresses(),
        "{delivery_address_list}": json.dumps(settings.WEBHOOK_SOURCE_ADDRESSES),
    }


def _describe_source_addresses() -> str:
    """Return a list of the networks from which deliveries come, or a sentence if they are not published."""
    listed = "".join(f"\n- `{network}`" for network in settings.WEBHOOK_SOURCE_ADDRESSES)
    return f"{source_addresses.message()}\n{listed}" if listed else source_addresses.message()


def _scope_table() -> str:
    return _write_table(
        ("Scope", "Allows"), ((f"`{scope}`", meaning) for scope, meaning in settings.SCOPES.items())
    )


def _describe_moves(allowed: Mapping[tuple[Any, Any], str]) -> str:
    rows = (
        (f"`{origin}`", f"`{to}`", f"{cause[0].upper()}{cause[1:]}")
        for (origin, to), cause in allowed.items()
    )
    return _write_table(("From", "To", "When"), rows)


def _state_table(properties: dict[str, Any]) -> str:
    """Return a table of the fields that exist only in some states (rule read.fields)."""
    header = ("Field", *(f"`{status}`" for status in Status))
    rows = (
        (f"`{name}`", *(_describe_presence(field["x-states"], status) for status in Status))
        for name, field in properties.items()
        if "x-states" in field
    )
    return _write_table(header, rows)


def _card_table() -> str:
    """Return the table of test cards, each with the recipe that uses the card."""
    rows = (
        (f"`{card.number}`", card.effect.capitalize(), f"[{recipe.title}](#{recipe.anchor})")
        for card in CARDS.values()
        for recipe in [recipes.RECIPE_BY_CARD.get(card.number, recipes.RECIPES[0])]
    )
    return _write_table(("Test card", "What it does", "Recipe"), rows)


def _describe_presence(states: dict[str, list[str]], status: Status) -> str:
    if status in states["always"]:
        return "yes"
    return "may" if status in states["sometimes"] else "–"


def tag_description(name: str) -> str:
    """Return the description for a group of calls, as CommonMark."""
    if name != "Sandbox":
        return TAGS[name]
    cards = ((f"`{card.number}`", card.effect.capitalize()) for card in CARDS.values())
    return f"{TAGS[name]}\n\n{_write_table(('Test card', 'What it does'), cards)}"


def _write_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
