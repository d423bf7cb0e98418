"""The frame of the operators' pages: the menu with the numbers of waiting rows, and the links to all records."""

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from django.apps import apps
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst

from portal.backoffice import estimates

# The admin's lists, grouped by topic. Each entry has the label of the list, and its model.
RECORDS: dict[str, Sequence[tuple[str, str]]] = {
    "Orders": (
        ("Checkouts", "checkout.checkout"),
        ("Shares", "checkout.paymentrequest"),
        ("Refunds", "checkout.refund"),
        ("Customers", "checkout.customer"),
        ("API calls", "checkout.apicall"),
        ("Idempotency keys", "checkout.idempotencykey"),
        ("Changes", "checkout.change"),
    ),
    "Money": (
        ("Payments", "payments.payment"),
        ("Operations", "payments.operation"),
        ("Disputes", "payments.dispute"),
        ("Discrepancies", "payments.discrepancy"),
        ("Postings", "payments.posting"),
        ("Booked by hand", "payments.booking"),
        ("Balance", "payments.balanceentry"),
        ("Switches", "payments.switch"),
    ),
    "Webhooks and messages": (
        ("Events", "webhooks.event"),
        ("Deliveries", "webhooks.delivery"),
        ("Attempts", "webhooks.attempt"),
        ("Subscriptions", "webhooks.subscription"),
        ("Texts", "hosted_page.smsmessage"),
        ("Emails", "portal.outboundemail"),
        ("CSP reports", "hosted_page.cspreport"),
    ),
    "People": (
        ("Merchants", "payments.merchant"),
        ("Users", "portal.user"),
        ("Memberships", "portal.membership"),
        ("API clients", "portal.apiclient"),
        ("Audit entries", "portal.auditentry"),
        ("Opt-ins", "hosted_page.optin"),
    ),
}
MENU = (
    ("checkout.checkout", "payments.payment", "checkout.refund", "payments.dispute", "payments.discrepancy"),
    ("payments.merchant", "payments.switch", "portal.user"),
    ("webhooks.event", "webhooks.delivery", "hosted_page.smsmessage", "portal.outboundemail"),
)
_LABELS = {model: label for rows in RECORDS.values() for label, model in rows}
_LIST_QUERIES = {"payments.discrepancy": "?state=open"}

# The labels for tables that are not in RECORDS. Without a label, Django shows a name made from the class name.
_TABLES = {
    "admin.logentry": "Operators’ actions",
    "checkout.prefill": "Prefilled customer data",
    "hosted_page.cardtry": "Card attempts",
    "hosted_page.payersignin": "Payer sign-ins",
    "hosted_page.sharetake": "Share claims",
    "hosted_page.signincode": "Sign-in codes",
    "hosted_page.smsday": "Texts per day",
    "hosted_page.smsstop": "Opted-out numbers",
    "payments.reconciled": "Reconciliations",
    "portal.lastwrite": "Last changes",
}

SEARCH_PERMISSIONS = ("checkout.view_checkout", "checkout.view_customer", "payments.view_payment")


class Link(NamedTuple):
    """A link to a page or list, with the number of rows that wait for a person, and a note."""

    words: str
    address: str
    waiting: int = 0
    is_here: bool = False
    note: str = ""


def table_label(title: str) -> str:
    """Return our label for a table. `title` is Django's title, such as "Api calls" or "Lead tolds (checkout)"."""
    name, bracket, suffix = title.partition(" (")
    return _labels_by_title().get(name, name) + bracket + suffix


@cache
def _labels_by_title() -> dict[str, str]:
    """Return our labels, keyed by Django's titles."""
    labels = _TABLES | _LABELS
    return {
        str(capfirst(apps.get_model(model)._meta.verbose_name_plural)): label
        for model, label in labels.items()
    }


def group_by_topic(links: Sequence[Any]) -> list[tuple[str, list[Any]]]:
    """Return the links grouped by topic, in the order of RECORDS. Links without a topic come last.

    The `title` of each link is Django's title for the list.
    """
    places = {
        label: (place, topic)
        for place, (topic, label) in enumerate(
            (topic, label) for topic, rows in RECORDS.items() for label, _ in rows
        )
    }
    place_by_link = {
        link: places.get(table_label(link.title).partition(" (")[0], (len(places), "Other")) for link in links
    }
    ordered = sorted(links, key=lambda link: place_by_link[link][0])
    return [
        (topic, list(rows))
        for topic, rows in itertools.groupby(ordered, key=lambda link: place_by_link[link][1])
    ]


def frame_context(request: HttpRequest, in_doubt: int, open_cases: int) -> dict[str, Any]:
    """Return the template context for the frame.

    `in_doubt` and `open_cases` are the numbers of operations and discrepancies that wait.
    """
    return {
        "menu": build_menu(request, in_doubt, open_cases),
        "may_look": may_see_operations(request),
        "may_find": request.user.has_perms(SEARCH_PERMISSIONS),
    }


def build_menu(request: HttpRequest, in_doubt: int, open_cases: int) -> list[list[Link]]:
    """Return the menu in groups: our own pages first, then the lists that this operator may see."""
    own_links = [Link("Overview", reverse("admin:index"))]
    if may_see_operations(request):
        own_links.append(Link("Operations", reverse("admin_operations"), in_doubt))
    waiting = {"payments.discrepancy": open_cases}
    groups = [
        own_links,
        *([_link_to_list(model, waiting) for model in group if may_see(request, model)] for group in MENU),
    ]
    return [
        [link._replace(is_here=_is_here(link, request.path)) for link in group] for group in groups if group
    ]


def may_see_operations(request: HttpRequest) -> bool:
    """Return whether this operator may see operations in doubt and cases (open discrepancies)."""
    return request.user.has_perm("payments.view_operation")


def record_links(
    request: HttpRequest, in_doubt: int, open_cases: int, disputes: int
) -> dict[str, list[Link]]:
    """Return links to the lists that this operator may see, grouped by topic.

    A link's note says how many rows of the list wait. If no row waits, the note estimates the number of all
    rows.
    """
    waiting = {
        "payments.operation": (in_doubt, "in doubt"),
        "payments.discrepancy": (open_cases, "open"),
        "payments.dispute": (disputes, "open"),
    }
    counts = estimates.estimated_rows([model for rows in RECORDS.values() for _, model in rows])
    links_by_topic = {
        topic: [
            _link_to_list(model, {})._replace(note=_waiting_note(waiting.get(model), counts.get(model, 0)))
            for _, model in rows
            if may_see(request, model)
        ]
        for topic, rows in RECORDS.items()
    }
    return {topic: links for topic, links in links_by_topic.items() if links}


def _waiting_note(waiting: tuple[int, str] | None, count: int) -> str:
    if waiting is not None and waiting[0]:
        return f"{waiting[0]} {waiting[1]}"
    return estimates.in_words(count)


def may_see(request: HttpRequest, model: str) -> bool:
    """Return whether this operator may see the list of a model, such as "checkout.checkout"."""
    app, _, name = model.partition(".")
    return request.user.has_perm(f"{app}.view_{name}") or request.user.has_perm(f"{app}.change_{name}")


def _is_here(link: Link, path: str) -> bool:
    """Return whether the path is the link's page, or the page of a row in the link's list."""
    address = link.address.partition("?")[0]
    return path == address or (path.startswith(address) and address != reverse("admin:index"))


def _link_to_list(model: str, waiting: dict[str, int]) -> Link:
    address = reverse(f"admin:{model.replace('.', '_')}_changelist") + _LIST_QUERIES.get(model, "")
    return Link(_LABELS[model], address, waiting.get(model, 0))
