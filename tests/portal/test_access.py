"""Each role can use only certain addresses, and only with its own merchant's objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from checkout.models import Change, Checkout, Refund
from payments.models import Merchant, Operation
from portal import urls
from portal.models import ApiClient, AuditEntry, Invitation, Membership, OutboundEmail, Role
from tests import factories
from tests.config import addresses
from tests.hosted_page.logo.test_storage import show_logo
from tests.portal import stage
from tests.portal.matrix import PERSONAL, ROWS
from tests.portal.stage import Stage
from webhooks import subscriptions
from webhooks.models import Delivery, Event, SigningSecret, Subscription

pytestmark = pytest.mark.django_db
OWN: tuple[Any, ...] = (
    *(
        Checkout,
        Refund,
        Delivery,
        Event,
        Subscription,
        ApiClient,
        Membership,
        Invitation,
        AuditEntry,
        OutboundEmail,
    ),
    *(Merchant, Operation, SigningSecret, Change, apps.get_model("hosted_page", "OptInText")),
)
DONE = {200, 302, 303}
OF_THE_SESSION = {"portal_switch"}  # changes only the browser's session


def act_on(own: Stage, name: str) -> dict[str, Any]:
    """Create the objects that the action needs, in addition to the stage. Return the ids for the action's address."""
    ids = own.ids() | {"merchant": own.merchant.pk}
    if name == "portal_cancel":
        ids["checkout_uuid"] = stage.hold(factories.checkout(own.merchant)).pk
    if name == "portal_revoke":
        subscriptions.rotate(own.merchant)
    if name == "portal_logo_remove":
        show_logo(own.merchant)
    if name == "portal_deliveries_close":
        Event.objects.update(body_deleted_at=timezone.now())
    return ids


ADDRESSES = [(route, pattern.name or "") for route, pattern in addresses.below(urls.urlpatterns)]


def everything() -> dict[str, list[Any]]:
    """Return all rows that a request can change, keyed by model."""
    ignored = {"last_used_at", "last_login"}
    return {
        model.__name__: list(
            model.objects.order_by("pk").values(
                *[field.attname for field in model._meta.concrete_fields if field.attname not in ignored]
            )
        )
        for model in OWN
    }


def of_merchant(merchant: Merchant) -> dict[str, list[Any]]:
    """Return all rows that refer to a merchant, keyed by model."""
    uuid = merchant.pk
    return {model: [row for row in rows if uuid in row.values()] for model, rows in everything().items()}


def path_of(name: str) -> str:
    return next(path for path, known in ADDRESSES if known == name)


@pytest.fixture
def own(acme: Merchant) -> Stage:
    return Stage(acme)


@pytest.fixture
def strangers(rival: Merchant) -> Stage:
    return Stage(rival)


def ask(client: Client, name: str, ids: dict[str, Any]) -> Any:
    row = ROWS[name]
    address = reverse(name, kwargs={part: uuid for part, uuid in ids.items() if f":{part}>" in path_of(name)})
    form = {part: value.format(**ids) for part, value in row.form.items()}
    return client.post(address, form) if row.method == "POST" else client.get(address)


def test_every_address_has_a_row() -> None:
    merchants = [(path, name) for path, name in ADDRESSES if not path.startswith(PERSONAL)]
    assert {name for _, name in merchants} == set(ROWS)
    assert all(path.startswith("portal") for path, _ in merchants)


@contextmanager
def undone() -> Iterator[None]:
    """Roll back all changes that are made in the block, even in durable transactions."""
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]  # as TestCase marks its own blocks
    with block:
        yield
        transaction.set_rollback(True)


@pytest.mark.rule("portal.roles")
@pytest.mark.parametrize("name", ROWS)
class TestAddress:
    def test_serves_those_roles_and_no_other(self, own: Stage, name: str) -> None:
        ids = act_on(own, name)
        before = everything()
        effects: dict[str, set[str]] = {}
        for role in Role:
            with undone():
                answer = ask(stage.browser(own.people[role]), name, ids)
                assert answer["Cache-Control"] == "no-store", "a cache keeps nothing of the portal"
                if role in ROWS[name].roles.split():
                    assert answer.status_code in DONE, (role, answer.status_code)
                    assert "reauthenticate" not in answer.headers.get("Location", "")
                    after = everything()
                    effects[role] = {model for model, rows in after.items() if rows != before[model]}
                    continue
                assert answer.status_code == 403, role
                said = answer.content.decode()
                what = "see this page" if ROWS[name].method == "GET" else "do this"
                assert f"<h1>You cannot {what}</h1>" in said and f"<title>TEST · You cannot {what}" in said
                assert "req_" in said, "the page says which request it was"
                *most, last = ROWS[name].roles.split()
                assert f"Only people in your team whose role is {', '.join(most)} or {last} can." in said
                assert everything() == before, role
        assert len(set(map(frozenset, effects.values()))) == 1, f"each role does the same: {effects}"
        changes_rows = ROWS[name].method == "POST" and name not in OF_THE_SESSION
        assert not changes_rows or any(effects.values()), "the roles that may do it have an effect"

    def test_shows_no_data_of_another_merchant(self, own: Stage, strangers: Stage, name: str) -> None:
        ids = strangers.ids() | {"merchant": strangers.merchant.pk}
        before = of_merchant(strangers.merchant)
        answer = ask(stage.browser(own.people[Role.OWNER]), name, ids)
        if "uuid:" in path_of(name) or "{" in "".join(ROWS[name].form.values()):
            assert answer.status_code == 404
        elif not getattr(answer, "streaming", False):
            assert not any(str(uuid) in answer.content.decode() for uuid in ids.values())
        assert of_merchant(strangers.merchant) == before

    @pytest.mark.rule("portal.second_factor")
    def test_changes_nothing_without_access(self, own: Stage, name: str) -> None:
        ids, row = own.ids() | {"merchant": own.merchant.pk}, ROWS[name]
        before = everything()
        outside = ask(Client(), name, ids)
        assert outside.status_code == 302 and outside["Location"].startswith("/accounts/login/")
        if row.is_sensitive:
            tired = ask(stage.browser(own.people[Role.OWNER], is_fresh=False), name, ids)
            assert tired.status_code == 302 and "reauthenticate" in tired["Location"]
        client = stage.browser(own.people[Role.OWNER])
        if row.method == "POST":
            client.handler.enforce_csrf_checks = True
            assert ask(client, name, ids).status_code == 403, "a form without its token"
        named = {part: uuid for part, uuid in ids.items() if f":{part}>" in path_of(name)}
        assert client.get(reverse(name, kwargs=named)).status_code in {200, 302, 405}
        after = everything()
        after["AuditEntry"], before["AuditEntry"] = [], []  # because an export can add an audit entry
        assert after == before


@pytest.fixture
def client(owner: Membership) -> Client:
    return stage.browser(owner)


class TestMerchants:
    def test_can_be_switched(self, acme: Merchant, rival: Merchant, owner: Membership) -> None:
        client = stage.browser(owner)
        assert "You are here" not in client.get("/portal/menu").content.decode(), "there is one alone"
        Membership.objects.create(merchant=rival, user=owner.user, role=Role.VIEWER)
        menu = client.get("/portal/menu").content.decode()
        assert "Rival" in menu and "You are here" in menu
        client.post("/portal/merchant", {"merchant": str(rival.pk)})
        assert "Rival" in client.get("/portal").content.decode()
        assert client.post("/portal/team/invite", {"email": "a@b.example"}).status_code == 403, (
            "a viewer there"
        )

    def test_of_other_people_cannot_be_opened(self, rival: Merchant, client: Client) -> None:
        for wanted in (str(rival.pk), "nonsense", ""):
            assert client.post("/portal/merchant", {"merchant": wanted}).status_code == 404
