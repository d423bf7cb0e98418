"""The front page (GET /): it leads merchants to portal and documentation and, on a developer's machine, to the shop."""

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe


class Place(NamedTuple):
    """Where one goes on, in words."""

    address: str
    name: str
    words: str


@require_safe
def front(request: HttpRequest) -> HttpResponse:
    """GET / (rule docs.front)."""
    title = settings.SPECTACULAR_SETTINGS["TITLE"]
    response = render(request, "front.html", {"title": title, "places": _places()})
    response["Cache-Control"] = "public, max-age=300"
    return response


def _places() -> list[Place]:
    places = [
        Place(reverse("portal_home"), "Portal", "For merchants: orders, refunds, webhooks, keys and people."),
        Place(
            reverse("api_docs"), "Documentation", "For their developers: a quick start, recipes, every call."
        ),
    ]
    if settings.SHOP_PORT:
        places.append(
            Place(f"http://127.0.0.1:{settings.SHOP_PORT}/", "Demo shop", "Buy a ticket, as a customer does.")
        )
    return places
