"""The replica serves only some pages of the portal and of operators, and never gets certain queries."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse
from django.utils.http import urlencode

from config.lib.admin import columns
from config.lib.database import replica
from hosted_page.models import CardTry, SignInCode, SmsMessage
from payments.models import Merchant, Switch
from payments.providers.sandbox.models import CardSession, CardToken
from portal import urls
from portal.models import Role, User
from tests.config import addresses
from tests.config.lib.database.standby import Standby, counted
from tests.portal import people, stage
from tests.portal.matrix import ROWS
from tests.portal.stage import Stage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("replica.pages")]
UNLOGGED = {CardSession, CardToken, CardTry, SignInCode, SmsMessage}
# A replica has no rows of unlogged tables, and an operator must see a stop at once.
ON_PRIMARY = UNLOGGED | {Switch}
FORM = "application/x-www-form-urlencoded"
LISTS = {
    f"portal_{name}"
    for name in ("home", "checkouts", "groups", "refunds", "requests", "balance", "deliveries", "audit")
}
FILES = {
    "portal_checkouts_csv",
    "portal_refunds_csv",
    "portal_balance_csv",
    "portal_groups_csv",
    "portal_payout_csv",
}
# Tables with identities and permissions: sessions, second factors, users, roles and rights.
OF_ACCESS = re.compile(
    r'FROM "(django_session|auth_\w+|account_\w+|mfa_\w+|usersessions_\w+|portal_membership|portal_user)"'
)
# Statements that write. A query that begins with `WITH found AS MATERIALIZED` does not count, because it only locks and
# reads.
WRITING = re.compile(r"^\s*(INSERT|UPDATE|DELETE|WITH(?! found AS MATERIALIZED))\b", re.IGNORECASE)


def path(name: str, ids: dict[str, Any]) -> str:
    (route,) = {
        route for route, pattern in addresses.below(get_resolver().url_patterns) if pattern.name == name
    }
    return reverse(name, kwargs={part: ids[part] for part in re.findall(r"<uuid:(\w+)>", route)})


@contextmanager
def asked_by(standby: Standby, but_for: str = "nothing") -> Iterator[list[bool]]:
    """Yield a list. At the end of the block, its only element is whether the replica served a read.

    Fail if the replica gets a query for a table that OF_ACCESS matches, except for the table `but_for`.
    """
    standby.catch_up()
    found: list[bool] = []
    with standby.received_statements() as asked, counted() as by:
        yield found
    assert {table for text in asked for table in OF_ACCESS.findall(text)} <= {but_for}
    assert bool(asked) == bool(by.get("replica"))
    found.append(bool(asked))


@pytest.mark.parametrize("role", [Role.OWNER, pytest.param(Role.SUPPORT, marks=pytest.mark.long)])
def test_portal_pages_are_read_from_the_replica(standby: Standby, acme: Merchant, role: Role) -> None:
    own = Stage(acme)
    browser = stage.browser(own.people[role])
    served = set()
    for name, row in ROWS.items():
        if row.method == "GET":
            with asked_by(standby) as found:
                answer: Any = browser.get(path(name, own.ids()))
                assert answer.status_code in (200, 302) or role.value not in row.roles
                b"".join(answer)
            served |= {name} if found[0] else set()
    assert served == (LISTS | FILES) - {name for name, row in ROWS.items() if role.value not in row.roles}


@pytest.mark.long
def test_portal_posts_never_use_the_replica(standby: Standby, acme: Merchant) -> None:
    own = Stage(acme)
    for name, row in ROWS.items():
        if row.method == "POST":
            browser = stage.browser(own.people[Role.OWNER])
            form = {part: value.format(**own.ids(), merchant=acme.pk) for part, value in row.form.items()}
            standby.catch_up()
            with standby.received_statements() as asked:
                browser.post(path(name, own.ids()), form)
                browser.get(path(name, own.ids()))
            assert asked == []
    marked = {pattern.name for _, pattern in addresses.below(urls.urlpatterns) if _is_marked(pattern)}
    assert marked == LISTS


def _is_marked(pattern: Any) -> bool:
    return replica.may_read(pattern.callback, "GET")


def test_a_post_to_a_list_does_not_use_the_replica(standby: Standby, acme: Merchant) -> None:
    browser = stage.browser(stage.person(acme, Role.OWNER))
    standby.catch_up()
    with standby.received_statements() as asked:
        for name in LISTS:
            browser.post(reverse(name))
    assert asked == []


@pytest.mark.long
def test_operators_pages_are_read_from_the_replica(standby: Standby, client: Client, acme: Merchant) -> None:
    own = Stage(acme)
    people.operate(client)
    for model in admin.site._registry:
        with asked_by(standby, but_for=model._meta.db_table) as found:
            assert client.get(columns.list_address(model._meta.label_lower)).status_code == 200
        assert found == [model not in ON_PRIMARY], model
    for address in ("/admin/", "/admin/now", "/admin/operations/", "/admin/find?q=A-0"):
        with asked_by(standby) as found:
            assert client.get(address).status_code == 200
        assert found == [True]
    for address in (f"/admin/checkout/checkout/{own.checkout.pk}/change/", "/admin/payments/switch/add/"):
        with asked_by(standby) as found:
            assert client.get(address).status_code == 200
        assert found == [False]


def test_permissions_of_an_operator_are_read_from_the_primary(
    standby: Standby, client: Client, acme: Merchant
) -> None:
    person = User.objects.create_user("x@example.com", is_staff=True)
    rights = Permission.objects.filter(codename__in=("view_operation", "view_checkout"))
    person.user_permissions.set(rights)
    people.operate(client, person)
    for address in ("/admin/", "/admin/checkout/checkout/"):
        with asked_by(standby) as found:
            assert client.get(address).status_code == 200
        assert found == [True]


@pytest.mark.rule("replica.own_writes")
def test_the_last_write_position_is_recorded_after_all_other_writes(standby: Standby, acme: Merchant) -> None:
    """A request that writes records its log position last. Only the session is saved later.

    The replica might lack rows that are written after this position. For the session, this is harmless, because
    sessions are always read on the primary.
    """
    own = Stage(acme)
    for name, row in ROWS.items():
        browser = stage.browser(own.people[Role.OWNER])
        form = {part: value.format(**own.ids(), merchant=acme.pk) for part, value in row.form.items()}
        with CaptureQueriesContext(connection) as asked:
            answer: Any = browser.generic(row.method, path(name, own.ids()), urlencode(form), FORM)
            b"".join(answer)
        written = [query["sql"] for query in asked if WRITING.match(query["sql"])]
        written = [
            sql for sql in written if not re.search(r'"?(django_session|usersessions_usersession)"?', sql)
        ]
        assert not written or "portal_lastwrite" in written[-1], name
