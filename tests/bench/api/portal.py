"""The portal on 1,000,000 checkouts: how long each page takes on the server, and how many statements.

By seed_load, in this process through the whole application, signed in as the merchant's owner. Beside it the same
page on a merchant with 200 checkouts: what minds the size shows in the ratio.
"""

import statistics
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from allauth.account.internal.flows import login
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from checkout.models import ApiCall, Checkout
from config.lib import clock, cursor
from config.lib.database import partitions
from payments.models import Merchant
from portal.dashboard import counting
from portal.models import Membership
from tests.bench.api import app, report, size
from tests.bench.api.app import Backend, Call
from tests.bench.seed_load import loading
from webhooks.models import PARTITIONED

HOME_MS, PAGE_MS, STATEMENTS = 100.0, 150.0, 20
ROUNDS = 15
# Nothing so dear is in the log: all of it is walked. An index of amounts would cost each order on its way more
# than it saves whoever asks for this.
WALKS = {"checkouts, at least, of none"}


class Desk(NamedTuple):
    """A database and a browser that is signed in there."""

    name: str
    cookie: str
    pages: dict[str, str]


def run(folder: Path, scale: float) -> None:
    """Print the table."""
    app.log_to(folder / "portal.deliveries.log")
    full = _desk("portal_full", max(1000, round(size.FULL * scale)))
    empty = _desk("portal_empty", size.EMPTY)
    rounds = max(3, round(ROUNDS * scale))
    rows = []
    for page in full.pages:
        many, statements = _measured(full, page, rounds)
        few, _ = _measured(empty, page, rounds)
        budget = HOME_MS if page.startswith("home") else None if page in WALKS else PAGE_MS
        judged = report.judged(f"{page}, ms of the server", many, budget)
        rows.append(
            (
                page,
                judged,
                f"{few:.1f}",
                f"{many / few:.2f}",
                report.judged(f"{page}, statements", statements, STATEMENTS),
            )
        )
        report.progress(page)
    report.table(("page", "ms on 1,000,000", "ms on 200", "ratio", "statements"), rows)


def _desk(name: str, checkouts: int) -> Desk:
    side = size.seeded(name, checkouts)
    merchant = side.backend.merchant
    _deliver(merchant)
    report.progress(f"hours counted: {counting.catch_up(clock.now())}")
    with connection.cursor() as database:
        database.execute("SET statement_timeout = 0")
        database.execute("VACUUM ANALYZE")
    rows = Checkout.objects.filter(merchant=merchant, status="captured").order_by("created_at")
    some = rows[rows.count() // 2]
    request_id = ApiCall.objects.filter(checkout_uuid=some.pk).values_list("request_id", flat=True)[0]
    older = _older(side.backend)
    pages = {
        "home, 24 h": "/portal?range=24h",
        "home, 7 d": "/portal?range=7d",
        "home, 30 d": "/portal?range=30d",
        "checkouts": "/portal/checkouts",
        "checkouts, an older page": f"/portal/checkouts?cursor={older}",
        "checkouts, captured": "/portal/checkouts?state=captured",
        "checkouts, hold lapsed": "/portal/checkouts?state=lapsed",
        "checkouts, a day": f"/portal/checkouts?since={some.created_at:%Y-%m-%d}&until={some.created_at:%Y-%m-%d}",
        "checkouts, at least": "/portal/checkouts?at_least=100",
        "checkouts, at least, of none": "/portal/checkouts?at_least=900000",
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
    return Desk(name, _signed_in(side.backend), pages)


# Each event was delivered at the first attempt, but for one in fifty, which failed once before.
_LOG = """
WITH subscription AS (
    INSERT INTO webhooks_subscription (id, merchant_id, url, event_types, created_at, updated_at)
    VALUES (gen_random_uuid(), %(merchant)s, 'https://shop.example/hooks', '{*}', now(), now()) RETURNING id
), events AS (
    SELECT id, type, created_at, 1 + (random() < 0.02)::int AS attempts FROM webhooks_event
    WHERE merchant_id = %(merchant)s
), deliveries AS (
    INSERT INTO webhooks_delivery (id, merchant_id, event_id, subscription_id, event_type, status, is_urgent,
        attempt_count, resent_count, resent_by, ended_at)
    SELECT events.id, %(merchant)s, events.id, subscription.id, type, 'delivered', false, attempts, 0, '', created_at
    FROM events, subscription RETURNING id
)
INSERT INTO webhooks_attempt (id, merchant_id, delivery_id, number, event_type, actor, started_at, ended_at,
    is_delivered, http_status, duration_ms, response_excerpt)
SELECT overlay(events.id::text PLACING number::text FROM 36)::uuid, %(merchant)s, events.id, number, type, '',
    created_at + number * interval '5 s', created_at + number * interval '6 s', number = attempts,
    CASE WHEN number = attempts THEN 200 ELSE 500 END, 20 + random() * 400, ''
FROM events, generate_series(1, attempts) AS number
"""


def _deliver(merchant: Merchant) -> None:
    today = clock.now().date()
    for table in PARTITIONED:
        partitions.make(table, (clock.now() - loading.FIRST).date(), today)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(_LOG, {"merchant": merchant.pk})


def _older(backend: Backend) -> str:
    """The cursor of a page in the middle, as a person has it who turns pages."""
    rows = Checkout.objects.filter(merchant=backend.merchant).order_by("-created_at")
    middle = rows[rows.count() // 2]
    return cursor._write(middle.created_at, middle.pk, f"portal-checkouts-created_at:{backend.merchant.pk}")


def _signed_in(backend: Backend) -> str:
    owner = Membership.objects.select_related("user").get(merchant=backend.merchant, role="owner").user
    session: Any = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(owner.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = owner.get_session_auth_hash()
    session[login._AUTHENTICATION_METHODS_USER_SESSION_KEY] = str(owner.pk)
    session.save()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"


def _measured(desk: Desk, page: str, rounds: int) -> tuple[float, int]:
    """The median on the wall in milliseconds, and how many statements."""
    app.use(desk.name)
    call = Call("GET", desk.pages[page], cookie=desk.cookie)
    app.warm([call] * 3)
    walls: Sequence[float] = [_wall(call) for _ in range(rounds)]
    with CaptureQueriesContext(connection) as queries:
        call.made()
    statements = sum(
        not query["sql"].startswith(("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT")) for query in queries
    )
    return 1000 * statistics.median(walls), statements


def _wall(call: Call) -> float:
    started = time.perf_counter()
    call.made()
    return time.perf_counter() - started
