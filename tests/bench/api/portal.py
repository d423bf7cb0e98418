"""Measures the portal on a full database: for each page, the time on the server and the statements.

The reference is the same page on a database that is nearly empty. The whole application runs in this process,
and the merchant's owner is signed in. The databases are those of the section `size`.
"""

import time
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from allauth.account.internal.flows import login
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.db.models import QuerySet

from checkout.models import ApiCall, Checkout
from config.lib import clock, cursor
from portal.models import Membership
from tests.bench.api import app, report, sides, statements
from tests.bench.api.app import Backend, Call
from tests.bench.api.sides import Calls, Side

HOME_MS, PAGE_MS, STATEMENTS = 100.0, 150.0, 20
ROUNDS = 7
BUDGET = 1.2  # maximum ratio of the times on the full and on the nearly empty database
# No order has such an amount, so the query reads all orders. An index on amounts could prevent this, but it
# would add a cost to every order, and such searches are rare.
WALK = "/portal/checkouts?at_least=900000"


def run(folder: Path, scale: float) -> None:
    """Print the table of times, and how many database blocks each page touches."""
    app.log_to(folder / "portal.deliveries.log")
    full, empty = sides.both(folder, scale)
    tables = {side: _table(side) for side in (full, empty)}
    found = sides.costs(tables, max(3, round(ROUNDS * scale)))
    rows = []
    for page in tables[full]:
        wall, cpu = sides.ratios(found, page)
        budget = HOME_MS if page.startswith("home") else PAGE_MS
        rows.append(
            (
                page,
                report.judged(f"{page}, ms", sides.milliseconds(found, page, "full"), budget),
                f"{sides.milliseconds(found, page, 'empty'):.1f}",
                report.judged(f"{page}, full to empty, wall", wall, BUDGET),
                report.judged(f"{page}, full to empty, CPU", cpu, BUDGET),
                report.judged(f"{page}, statements", _statements(full, tables[full][page]), STATEMENTS),
            )
        )
    report.table(("page", "full ms", "empty ms", "wall, ratio", "CPU, ratio", "statements"), rows)
    report.line("")
    sides.print_blocks(tables)
    app.use(full.name)
    started = time.monotonic()
    Call("GET", WALK, cookie=_signed_in(full.backend)).send()
    report.line(f"an amount that no order has is looked for in {time.monotonic() - started:.1f} s")


def _statements(side: Side, calls: Calls) -> int:
    app.use(side.name)
    with statements.recorded() as sent:
        app.warm(calls(1))
    return len(sent)


def _table(side: Side) -> dict[str, Calls]:
    app.use(side.name)
    cookie = _signed_in(side.backend)
    return {name: sides.repeated(Call("GET", path, cookie=cookie)) for name, path in _paths(side).items()}


def _paths(side: Side) -> dict[str, str]:
    merchant = side.backend.merchant
    some = _half_way(Checkout.objects.filter(merchant=merchant, status="captured"))
    # The newest calls are used, because calls that are a year old have been deleted.
    calls = ApiCall.objects.filter(merchant=merchant, method="POST").order_by("-id")
    request_id = calls.values_list("request_id", flat=True)[10]
    older, today = _older(side.backend), f"{clock.now():%Y-%m-%d}"
    return {
        "home, 24 h": "/portal?range=24h",
        "home, 7 d": "/portal?range=7d",
        "home, 30 d": "/portal?range=30d",
        "checkouts": "/portal/checkouts",
        "checkouts, an older page": f"/portal/checkouts?cursor={older}",
        "checkouts, captured": "/portal/checkouts?state=captured",
        "checkouts, hold lapsed": "/portal/checkouts?state=lapsed",
        "checkouts, a day": f"/portal/checkouts?since={today}&until={today}",
        "checkouts, at least": "/portal/checkouts?at_least=100",
        "search, an order": f"/portal/checkouts?q={some.merchant_order_id}",
        "search, a request": f"/portal/checkouts?q={request_id}",
        "search, last 4": "/portal/checkouts?q=4242",
        "a checkout": f"/portal/checkouts/{some.pk}",
        "deliveries": "/portal/deliveries",
        "deliveries, parked": "/portal/deliveries?outcome=parked",
        "deliveries, of an order": f"/portal/deliveries?q={some.merchant_order_id}",
        "webhooks": "/portal/webhooks",
        "balance": "/portal/balance",
        "checklist": "/portal/checklist",
        "audit log": "/portal/audit",
    }


def _half_way(rows: QuerySet[Checkout]) -> Checkout:
    """Return a checkout that is about a year old, because the checkouts cover two years."""
    return rows.filter(created_at__lte=clock.now() - timedelta(days=365)).order_by("-created_at", "-id")[0]


def _older(backend: Backend) -> str:
    """Return the pagination cursor for a page in the middle of the list of checkouts."""
    middle = _half_way(Checkout.objects.filter(merchant=backend.merchant))
    return cursor.write_cursor(
        f"portal-checkouts-created_at:{backend.merchant.pk}", middle.created_at, middle.pk
    )


def _signed_in(backend: Backend) -> str:
    owner = Membership.objects.select_related("user").get(merchant=backend.merchant, role="owner").user
    session: Any = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(owner.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = owner.get_session_auth_hash()
    session[login._AUTHENTICATION_METHODS_USER_SESSION_KEY] = str(owner.pk)
    session.save()
    return f"{settings.SESSION_COOKIE_NAME}={session.secret}"
