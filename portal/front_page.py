"""The front page (GET /), with links to the portal, the documentation and, in a local run, the demo shop."""

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe


class Person(NamedTuple):
    """A person on the bill that the page draws. `offset` is where their part of the bar starts, in per cent."""

    name: str
    look: str
    offset: int
    words: str = ""
    tone: str = ""
    icon: str = ""


PEOPLE = (
    Person("Lea", "paid", 0),
    Person("Finn", "paid", 25, "Back on your card", "done", "back"),
    Person("Priya", "out", 50, "Not paid yet", "still", "dashes"),
    Person("Zoë", "out", 75, "Not paid yet", "still", "dashes"),
)


class ServiceLink(NamedTuple):
    """A link to another part of the service, with its description."""

    address: str
    name: str
    words: str


@require_safe
def show_front_page(request: HttpRequest) -> HttpResponse:
    """Show the front page, GET / (rule docs.front)."""
    title = settings.SPECTACULAR_SETTINGS["TITLE"]
    context = {"title": title, "places": _list_places(), "people": PEOPLE, "write_to": _contact_address()}
    response = render(request, "front.html", context)
    response["Cache-Control"] = "public, max-age=300"
    return response


def _contact_address() -> str:
    """Return the address to which a shop writes if it wants an account.

    Return "" if the address is an operator's login, because strangers must not learn it.
    """
    return "" if settings.SUPPORT_EMAIL in settings.OPERATORS else settings.SUPPORT_EMAIL


def _list_places() -> list[ServiceLink]:
    places = [
        ServiceLink(
            reverse("api_docs"), "Documentation", "For developers: a quick start, recipes, every call."
        ),
        ServiceLink(reverse("portal_home"), "Portal", "Sign in: orders, refunds, webhooks, keys and people."),
    ]
    if settings.SHOP_PORT:
        places.append(
            ServiceLink(
                f"http://127.0.0.1:{settings.SHOP_PORT}/", "Demo shop", "Buy a ticket, as a customer does."
            )
        )
    return places
