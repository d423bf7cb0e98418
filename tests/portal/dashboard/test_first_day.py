"""A merchant's home page before the first capture: the checklist, and sample requests that run unchanged."""

import json
import shlex

import pytest
from django.test import Client

from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal import keys
from portal.dashboard import first_day
from portal.models import Role
from tests import factories
from tests.conftest import Api
from tests.portal import stage

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.OWNER)


@pytest.mark.rule("portal.first_day")
class TestHome:
    def test_opens_no_step_while_payments_are_stopped(self, client: Client, acme: Merchant) -> None:
        keys.create_client(acme, "Shop")
        assert 'class="next-step"' in client.get("/portal").content.decode()
        factories.stop(acme)
        words = client.get("/portal").content.decode()
        assert "You can go on with these steps when payments work again." in words
        assert 'class="next-step"' not in words and "<pre" not in words

    def test_starts_with_the_checklist_until_the_first_capture(self, client: Client, acme: Merchant) -> None:
        words = client.get("/portal").content.decode()
        assert "Take your first payment" in words and "0 of 14 done" in words
        assert "Practise 9 things that can go wrong" in words
        assert "0 of 14 done" in client.get("/portal/checklist").content.decode(), "one number, one meaning"
        assert "Nothing needs your attention" not in words and '<svg class="chart' not in words
        assert "4000 0025 0000 3155" in words and "/api/docs" in words
        assert "None yet" in words and "Shown once" not in words
        keys.create_client(acme, "Shop")
        assert "Shown once, today " in client.get("/portal").content.decode()
        stage.captured(acme)
        words = client.get("/portal").content.decode()
        assert "Take your first payment" not in words and "<h1>Home</h1>" in words

    def test_offers_no_step_that_the_role_cannot_take(self, client: Client, acme: Merchant, api: Api) -> None:
        api.post("checkouts", factories.order())
        viewer = stage.browser(stage.person(acme, Role.VIEWER))
        for page in ("/portal", "/portal/checklist"):
            assert ">Send one<" in client.get(page).content.decode()
            words = viewer.get(page).content.decode()
            assert ">Send one<" not in words and "Owners, admins and developers can do this." in words

    def test_shows_the_merchants_open_tasks_too(self, client: Client, acme: Merchant) -> None:
        stage.parked(acme) if factories.subscribe(acme, url=stage.URL) else None
        words = client.get("/portal").content.decode()
        assert "1 delivery is parked" in words and "Take your first payment" in words
        assert words.count("button-pen") == 1, "only the task has the filled button"

    def test_first_offers_to_make_a_key(self, client: Client, acme: Merchant) -> None:
        words = client.get("/portal").content.decode()
        assert "First make a key." in words and 'href="/portal/keys#new-title">Make a key<' in words
        assert "/oauth/token -H" not in words, "a request without a key does not run"
        viewer = stage.browser(stage.person(acme, Role.VIEWER)).get("/portal").content.decode()
        assert ">Make a key<" not in viewer and "Owners, admins and developers can do this." in viewer


@pytest.mark.rule("portal.first_day")
class TestRequests:
    def test_the_first_gets_a_token_with_the_merchants_own_key(self, acme: Merchant) -> None:
        client_id = keys.create_client(acme, "Shop").client.client_id
        day = first_day.first_day_of(acme)
        assert day.next is not None and day.next.name == "token" and day.key is not None
        facts = shlex.split(day.request[len("TOKEN=$(") :].partition("|")[0].replace("\\\n", " "))
        asked = json.loads(facts[-1].replace("$CLIENT_SECRET", "sk_x"))
        assert asked == {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": "sk_x",
        }

    def test_the_next_creates_an_order_that_the_service_accepts(self, acme: Merchant, api: Api) -> None:
        acme.return_hosts = ["shop.acme.example"]
        acme.save()
        api.get_token()
        day = first_day.first_day_of(acme)
        assert day.next is not None and day.next.name == "checkout" and day.done == 1
        words = shlex.split(day.request.replace("\\\n", " "))
        made = api.post("checkouts", json.loads(words[-1]))
        assert made.status_code == 201, made.content
        held = stage.hold(Checkout.objects.get(pk=made.json()["data"]["checkout_uuid"]))
        factories.subscribe(acme, url=stage.URL)
        assert first_day.first_day_of(acme).steps[1].at == clock.time_of_id(held.pk)

    def test_the_capture_names_the_held_order(self, acme: Merchant, held: Checkout) -> None:
        assert f"/{held.pk}/capture" in first_day._request_example(acme, "capture", None)
        assert first_day._request_example(acme, "rotate", None) == ""
