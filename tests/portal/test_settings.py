import csv
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from checkout import refunds
from checkout.models import Checkout
from config.lib import clock
from hosted_page.models import OptInText
from hosted_page.opt_in import consent
from payments.models import Merchant
from portal.dashboard import checklist
from portal.mail import outbox as notices
from portal.models import AuditEntry, Role
from tests import factories, mates
from tests.conftest import Api
from tests.portal import stage
from webhooks import outbox, resending, subscriptions, testing
from webhooks.models import EventType

pytestmark = pytest.mark.django_db
FORM = {
    "name": "Acme Tickets",
    "brand_colour": "#1F4596",
    "country": "GB",
    "time_zone": "Europe/London",
    "support_url": "",
    "terms_url": "",
    "privacy_url": "",
    "return_hosts": "",
    "unpaid_minutes": "",
}


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.ADMIN))


def save(client: Client, **changes: str) -> Any:
    return client.post("/portal/settings/save", FORM | changes)


class TestSettings:
    def test_are_written_and_audited_by_name(self, client: Client, acme: Merchant) -> None:
        save(client, name="Acme Shows", brand_colour="#A61C59", support_url="https://acme.example/help")
        acme.refresh_from_db()
        assert (acme.name, acme.brand_colour, acme.brand_version) == ("Acme Shows", "#A61C59", 2)
        assert set(AuditEntry.objects.get().facts["fields"]) == {"name", "brand_colour", "support_url"}

    def test_the_name_wants_a_fresh_proof_and_is_mailed_to_the_owners(self, acme: Merchant) -> None:
        stage.person(acme, Role.OWNER, "lea@acme.example")
        tired = stage.browser(stage.person(acme, Role.ADMIN), is_fresh=False)
        asked = save(tired, name="Your bank")
        assert asked.status_code == 302 and "reauthenticate" in asked["Location"]
        acme.refresh_from_db()
        assert acme.name == "Acme Tickets" and not AuditEntry.objects.exists()
        assert save(tired, country="FR")["Location"] == "/portal/settings", "the others want none"
        notices.send_due()
        assert mail.outbox == []
        save(stage.browser(stage.person(acme, Role.ADMIN, "amy@acme.example")), name="Acme Shows")
        notices.send_due()
        (told,) = mail.outbox
        assert told.to == ["lea@acme.example"] and "amy@acme.example" in told.body
        assert told.subject == "TEST · Acme Shows: changed the name that customers see"

    def test_that_are_the_same_write_nothing(self, client: Client, acme: Merchant) -> None:
        save(client)
        acme.refresh_from_db()
        assert acme.brand_version == 1 and not AuditEntry.objects.exists()

    @pytest.mark.parametrize(
        "changes",
        [
            {"name": ""},
            {"name": "x" * 121},
            {"brand_colour": "red"},
            {"brand_colour": "#12345"},
            {"country": "XX"},
            {"time_zone": "Europe/Atlantis"},
            {"time_zone": "../../etc/passwd"},
            {"support_url": "http://acme.example"},
            {"terms_url": "javascript:alert(1)"},
            {"privacy_url": "nonsense"},
            {"return_hosts": "https://shop.example/"},
            {"return_hosts": "shop.example\nbad host!"},
            {"return_hosts": " ".join(f"h{number}.example" for number in range(21))},
            {"unpaid_minutes": "14"},
            {"unpaid_minutes": "1441"},
            {"unpaid_minutes": "soon"},
        ],
    )
    def test_refuse_and_keep_what_was_typed(
        self, client: Client, acme: Merchant, changes: dict[str, str]
    ) -> None:
        before = Merchant.objects.filter(pk=acme.pk).values().get()
        page = save(client, **changes)
        assert page.status_code == 422 and "field-error" in page.content.decode()
        assert Merchant.objects.filter(pk=acme.pk).values().get() == before


@pytest.mark.rule("create.return_hosts")
class TestReturnHosts:
    def test_refuse_any_other_at_creation(self, client: Client, api: Api) -> None:
        save(client, return_hosts="Shop.example\nbasket.example:8443")
        assert api.post("checkouts", factories.order()).status_code == 201
        ported = factories.order(cancel_url="https://basket.example:8443/back")
        assert api.post("checkouts", ported).status_code == 201
        for other in (
            "https://evil.example/",
            "https://shop.example.evil.example/",
            "https://sub.shop.example/",
        ):
            refused = api.post("checkouts", factories.order(return_url=other))
            assert refused.status_code == 422 and refused.json()["error"]["param"] == "return_url", other
        assert Checkout.objects.count() == 2

    def test_empty_take_any(self, api: Api) -> None:
        assert api.post("checkouts", factories.order(return_url="https://any.example/")).status_code == 201


@pytest.mark.rule("expiry.hour")
class TestUnpaidLifetime:
    def test_is_the_merchants_own(self, client: Client, acme: Merchant) -> None:
        save(client, unpaid_minutes="20")
        acme.refresh_from_db()
        checkout = factories.checkout(acme)
        assert checkout.payable_until - checkout.created_at == timedelta(minutes=20)

    def test_is_the_services_when_it_is_empty(self, acme: Merchant) -> None:
        checkout = factories.checkout(acme)
        assert checkout.payable_until - checkout.created_at == timedelta(minutes=60)


class TestOptInWording:
    WORDS = "Acme may write to me by e-mail and text. I can stop any time."

    def test_is_a_new_version_that_is_shown_from_now_on(self, client: Client, acme: Merchant) -> None:
        first = consent.wording(acme)
        client.post("/portal/settings/opt-in", {"text": f"  {self.WORDS} ", "language": "en-gb"})
        shown = consent.wording(acme)
        assert (shown.text, shown.version) == (self.WORDS, first.version + 1)
        assert OptInText.objects.get(pk=first.pk).text == first.text

    @pytest.mark.parametrize(
        "form", [{"text": "Short", "language": "en-gb"}, {"text": WORDS, "language": "de"}, {}]
    )
    def test_refuses_what_nobody_understands(self, client: Client, form: dict[str, str]) -> None:
        assert client.post("/portal/settings/opt-in", form).status_code == 422
        assert not OptInText.objects.exists()


class TestAuditLog:
    def test_shows_who_did_what_and_filters(self, client: Client, acme: Merchant) -> None:
        save(client, name="Acme Shows")
        owner = stage.browser(stage.person(acme, Role.OWNER, "lea@acme.example"))
        owner.post("/portal/keys/new", {"name": "Till", "scopes": "checkouts:read"})
        page = owner.get("/portal/audit").content.decode().split("<tbody>")[1]
        assert page.index("Made an API key") < page.index("Changed the settings")
        assert "lea@acme.example" in page and "req_" in page and "127.0.0.1" in page
        entry = AuditEntry.objects.get(action="key_created")
        for typed in ({"action": "key_created"}, {"person": "LEA"}, {"q": entry.request_id}):
            found = owner.get("/portal/audit", typed).content.decode().split("<tbody>")[1]
            assert "Made an API key" in found and "Changed the settings" not in found, typed
        assert "Nothing matches" in owner.get("/portal/audit?person=nobody").content.decode()


class TestChecklist:
    def test_ticks_itself_from_real_traffic(self, acme: Merchant, api: Api) -> None:
        def done() -> list[bool]:
            return [step.is_done for step in checklist.of(acme)]

        assert done() == [True, *[False] * 6], "the API's fixture has taken a token"
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        assert done() == [True, True, *[False] * 5]
        subscriptions.register(acme, url=stage.URL, event_types=["*"])
        testing.send(acme)
        stage.deliver(acme, 500)
        assert done()[2] is False
        testing.send(acme)
        stage.deliver(acme, 204)
        assert done()[2] is True
        stage.hold(Checkout.objects.get(pk=uuid))
        first = stage.deliver(acme, 200)
        api.post(f"checkouts/{uuid}/capture")
        assert done()[3:] == [True, False, False, False]
        cause = factories.CAUSE
        resending.resend(acme, first.pk, cause=cause, although_over=True, although_delivered=True)
        stage.deliver(acme, 200)
        assert done()[4] is True
        api.post(f"checkouts/{uuid}/refund", {"merchant_refund_ref": "r-1"})
        assert done()[5] is False, "accepted, not settled"
        for _ in range(3):
            mates.pump(Checkout.objects.get(pk=uuid).pk)
        assert done()[5] is True
        subscriptions.rotate(acme)
        assert done()[6] is False
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        stage.deliver(acme, 200)
        assert done() == [True] * 7

    def test_page_names_the_next_step(self, client: Client) -> None:
        page = client.get("/portal/checklist").content.decode()
        assert "0 of 7 done" in page and "button-pen" in page


class TestBalance:
    def test_is_what_the_movements_add_up_to(self, acme: Merchant, client: Client) -> None:
        stage.captured(acme)
        stage.captured(acme, merchant_order_id="A-2")
        page = client.get("/portal/balance").content.decode()
        assert "£180.00" in page and page.count("£90.00") == 2
        answer: Any = client.get("/portal/balance.csv")
        _, *lines = csv.reader(b"".join(answer.streaming_content).decode("utf-8-sig").splitlines())
        assert len(lines) == 2 and sum(float(line[2]) for line in lines) == 180.0
        assert AuditEntry.objects.filter(action="exported").exists()

    def test_file_holds_refunds_as_numbers(self, acme: Merchant, client: Client) -> None:
        captured = stage.captured(acme)
        refunds.accept(acme, captured.pk, ref="r-1", cause=factories.CAUSE)
        for _ in range(3):
            mates.pump(captured.pk)
        answer: Any = client.get("/portal/balance.csv")
        _, *lines = csv.reader(b"".join(answer.streaming_content).decode("utf-8-sig").splitlines())
        assert [float(line[2]) for line in lines] == [-90.0, 90.0]
