"""In the portal, people can resend deliveries, and personal data is masked."""

import re
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.deliveries import search
from portal.models import AuditEntry, Role
from tests import factories
from tests.portal import stage
from tests.portal.stage import saved
from webhooks import outbox, subscriptions
from webhooks.models import Delivery, Event, EventType

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.OWNER)


class TestPersonalData:
    @pytest.fixture
    def opted_in(self, acme: Merchant) -> Delivery:
        saved(acme)
        payload = {"customer": {"email": "lea@example.com"}}
        event = outbox.emit(acme, EventType.OPTED_IN, payload, at=clock.now())
        return event.deliveries.get()

    def test_is_masked_until_a_user_reveals_it(self, client: Client, opted_in: Delivery) -> None:
        address = f"/portal/deliveries/{opted_in.pk}"
        masked = client.get(address).content.decode()
        assert "lea@example.com" not in masked and "The body contains personal data" in masked
        assert "lea@example.com" in client.post(f"{address}/reveal").content.decode()
        assert AuditEntry.objects.get().action == "personal_data_revealed"
        assert "lea@example.com" not in str(AuditEntry.objects.values())
        assert "lea@example.com" not in client.get(address).content.decode(), "not for good"

    def test_cannot_be_revealed_without_the_right(self, acme: Merchant, opted_in: Delivery) -> None:
        client = stage.browser(stage.person(acme, Role.DEVELOPER))
        assert "Show it" not in client.get(f"/portal/deliveries/{opted_in.pk}").content.decode()


@pytest.mark.rule("resend.closed")
class TestClosing:
    @pytest.fixture
    def over(self, acme: Merchant) -> Delivery:
        """Return a parked delivery of an event about a hold that has ended."""
        saved(acme)
        held = stage.hold(factories.checkout(acme))
        delivery = stage.deliver(acme, 500, excerpt="down")
        Delivery.objects.filter(pk=delivery.pk).delete()
        Event.objects.filter(checkout_uuid=held.pk).update(valid_until=clock.now() - timedelta(seconds=1))
        delivery.status, delivery.next_attempt_at, delivery.ended_at = "parked", None, clock.now()
        delivery.save(force_insert=True)
        return delivery

    def test_removes_deliveries_that_cannot_be_sent_from_list_and_badge(
        self, client: Client, over: Delivery
    ) -> None:
        assert "Send all parked" not in client.get("/portal/deliveries").content.decode(), (
            "that cannot be sent"
        )
        fit = stage.parked(over.merchant)
        assert "again (1)" in client.get("/portal/deliveries").content.decode()
        words = client.get("/portal/deliveries?outcome=parked").content.decode()
        order = Checkout.objects.get().merchant_order_id
        assert f'checkout.authorized for <bdi class="whole">{order}</bdi> is too late' in words
        assert (
            "Its hold has ended. Sending it again has no effect. You can close it. It stays in the log."
            in words
        )
        assert words.count('class="table-thing"') == 2
        assert re.search(r'action="/portal/deliveries/close"[^§]*?>Close it</button>', words)
        assert words.count('type="checkbox"') == 1, "what cannot be sent with others is not ticked"
        assert "too late</span>" in words
        words = client.get(f"/portal/deliveries/{over.pk}").content.decode()
        assert "Send anyway" in words and f'aria-describedby="again-{over.pk}"' in words
        assert "your server gets it, but it cannot capture this order any more" in words
        done = client.post("/portal/deliveries/close", follow=True).content.decode()
        assert "1 delivery is closed." in done and "too late" not in done
        words = client.get("/portal/deliveries?outcome=parked").content.decode()
        assert words.count('class="table-thing"') == 1 and str(fit.pk) in words
        assert "1 delivery is parked" in client.get("/portal").content.decode(), "not two"
        assert "Closed" in client.get(f"/portal/deliveries/{over.pk}").content.decode()
        assert AuditEntry.objects.get(action="deliveries_closed").facts == {"closed": 1}
        client.post("/portal/deliveries/close")
        assert AuditEntry.objects.filter(action="deliveries_closed").count() == 1, "nothing was left"

    def test_shows_the_reason_or_the_number_of_such_deliveries(
        self, client: Client, acme: Merchant, over: Delivery
    ) -> None:
        Delivery.objects.update(closed_at=clock.now())
        assert search.newest_unsendable(acme) is None
        gone = stage.parked(acme)
        Event.objects.filter(pk=gone.event_id).update(body=b"", body_deleted_at=clock.now())
        assert (search.newest_unsendable(acme) or {})["why"] == "Its personal data has been deleted."
        assert " is too late" in client.get("/portal/deliveries").content.decode()
        Delivery.objects.update(closed_at=None)
        words = re.sub(r"\s+", " ", client.get("/portal/deliveries").content.decode())
        assert (
            "2 parked deliveries are too late" in words
            and "You can close them. They stay in the log." in words
        )

    def test_is_undone_by_sending_it_again(self, client: Client, over: Delivery) -> None:
        client.post("/portal/deliveries/close")
        form = {"which": "one", "delivery": str(over.pk), "confirm": "yes"}
        client.post("/portal/deliveries/resend", form)
        over.refresh_from_db()
        assert (over.status, over.closed_at) == ("pending", None)

    def test_excludes_closed_deliveries_from_sending_all_parked(self, client: Client, over: Delivery) -> None:
        client.post("/portal/deliveries/close")
        form = {"which": "parked", "since": "2020-01-01T00:00:00Z", "confirm": "yes"}
        words = client.post("/portal/deliveries/resend", form, follow=True).content.decode()
        over.refresh_from_db()
        assert over.status == "parked" and "None of these deliveries can be sent again" in words

    def test_parked_deliveries_show_their_response(self, client: Client, over: Delivery) -> None:
        words = client.get("/portal/deliveries?outcome=parked").content.decode()
        assert '<td class="table-answer table-amount">500</td>' in words

    def test_a_refused_resend_is_not_shown_as_a_success(
        self, client: Client, acme: Merchant, over: Delivery
    ) -> None:
        form = {"which": "selected", "delivery": str(over.pk)}
        words = client.post("/portal/deliveries/resend", form, follow=True).content.decode()
        notice = words.split("None of these deliveries can be sent again")[0].rpartition(
            '<div class="notice'
        )[2]
        assert "tone-held" in notice and "#check" not in notice


class TestRoleWithoutSending:
    @pytest.mark.parametrize("role", [Role.VIEWER])
    def test_sees_no_form_to_send(self, acme: Merchant, role: Role) -> None:
        saved(acme)
        delivery = stage.parked(acme)
        client = stage.browser(stage.person(acme, role))
        for address in (
            "/portal/deliveries?outcome=parked",
            f"/portal/deliveries/{delivery.pk}",
            f"/portal/deliveries/{delivery.pk}?confirm=over",
            f"/portal/deliveries/{delivery.pk}?confirm=delivered",
        ):
            main = client.get(address).content.decode().partition("<main")[2]
            assert str(delivery.pk) in main, address
            assert 'method="post"' not in main and 'type="checkbox"' not in main, address


class TestResend:
    def test_sends_one_delivery(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        delivery = stage.parked(acme)
        done = client.post("/portal/deliveries/resend", {"which": "one", "delivery": str(delivery.pk)})
        delivery.refresh_from_db()
        assert delivery.status == "pending" and delivery.resent_by.startswith("user:")
        assert done["Location"].startswith(f"/portal/deliveries/{delivery.pk}")

    def test_counts_as_an_attempt_in_addition_to_the_automatic_ones(
        self, client: Client, acme: Merchant
    ) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        delivery = stage.deliver(acme, 500)
        automatic, more = "We try 9 times in about three days", ", plus the attempts that you request."
        assert f"{automatic}." in client.get(f"/portal/deliveries/{delivery.pk}").content.decode()
        client.post("/portal/deliveries/resend", {"which": "one", "delivery": str(delivery.pk)})
        stage.deliver(acme, 500)
        assert automatic + more in client.get(f"/portal/deliveries/{delivery.pk}").content.decode()

    def test_updates_the_badge_with_the_answer(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        delivery = stage.parked(acme)
        sent = client.post("/portal/deliveries/resend", {"which": "one", "delivery": str(delivery.pk)})
        opened = client.get(sent["Location"]).content.decode()
        assert 'id="delivery-state"' in opened and "hx-swap-oob" not in opened
        stage.deliver(acme, 200)
        part = {"HX-Request": "true", "HX-Target": "opened"}
        answered = client.get(f"/portal/deliveries/{delivery.pk}", headers=part).content.decode()
        state = answered.partition('id="delivery-state"')[2]
        assert "hx-swap-oob" in state and "Delivered</span>" in state
        in_list = client.get(f"/portal/deliveries/{delivery.pk}", headers=part | {"HX-Target": "opened-1"})
        assert "delivery-state" not in in_list.content.decode(), "a list has no such badge"

    def test_updates_the_list_until_the_answers_are_in(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        stage.parked(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        stage.deliver(acme, 500)
        assert "every 2s" not in client.get("/portal/deliveries").content.decode()
        client.post("/portal/deliveries/resend", {"which": "parked", "since": "2020-01-01T00:00:00Z"})
        Delivery.objects.update(next_attempt_at=clock.now())
        assert "every 2s" in client.get("/portal/deliveries").content.decode()
        stage.deliver(acme, 200)
        stage.deliver(acme, 200)
        assert "every 2s" not in client.get("/portal/deliveries").content.decode()

    def test_of_an_ended_hold_asks_first(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        captured = stage.captured(acme)
        delivery = Delivery.objects.get(event__checkout_uuid=captured.pk)
        form = {"which": "one", "delivery": str(delivery.pk)}
        asked = client.post("/portal/deliveries/resend", form)
        assert asked["Location"].endswith("?confirm=over")
        assert "although the hold has ended" in client.get(asked["Location"]).content.decode()
        delivery.refresh_from_db()
        assert delivery.status == "superseded"
        client.post("/portal/deliveries/resend", form | {"confirm": "yes"})
        delivery.refresh_from_db()
        assert delivery.status == "pending"

    def test_of_a_delivered_event_asks_first(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        delivery = stage.deliver(acme, 200)
        form = {"which": "one", "delivery": str(delivery.pk)}
        asked = client.post("/portal/deliveries/resend", form)
        assert "Send this event a second time" in client.get(asked["Location"]).content.decode()
        shown = client.post("/portal/deliveries/resend", form | {"confirm": "yes"}, follow=True)
        said = "You sent this delivery again. Your server’s answer appears here."
        assert said in shown.content.decode(), "it stays true once the answer is there"
        delivery.refresh_from_db()
        assert delivery.status == "pending"
        refused = stage.deliver(acme, 500)
        assert refused.status == "delivered", "it goes back to where it stood"
        assert [attempt.is_delivered for attempt in refused.attempts.order_by("number")] == [True, False]

    def test_sends_the_selected_or_all_parked_deliveries(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        one, two, three = (stage.parked(acme) for _ in range(3))
        ticked = {"which": "selected", "delivery": [str(one.pk), "nonsense"]}
        page = client.post("/portal/deliveries/resend", ticked, follow=True)
        assert "1 delivery is on its way" in page.content.decode()
        assert Delivery.objects.filter(status="parked").count() == 2
        since = two.ended_at.isoformat() if two.ended_at else ""
        client.post("/portal/deliveries/resend", {"which": "parked", "since": since})
        assert not Delivery.objects.filter(status="parked").exists() and three

    @pytest.mark.rule("resend.same_event")
    def test_sends_all_parked_in_the_listed_period(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        newest, wanted, oldest = (stage.parked(acme) for _ in range(3))
        parked_at = timezone.localtime(timezone=ZoneInfo(acme.time_zone)).replace(microsecond=0)
        for hours, row in enumerate((newest, wanted, oldest), 1):
            Delivery.objects.filter(pk=row.pk).update(ended_at=parked_at - timedelta(hours=24 * hours))
        span = {
            name: f"{parked_at - timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}"
            for name, hours in (("since", 60), ("until", 36))
        }
        words = client.get("/portal/deliveries", span).content.decode()
        assert re.search(r"Send all parked from [^<]+, [0-9:]+\s+to [^<]+, [0-9:]+ again \(1\)", words)
        form = dict(re.findall(r'type="hidden" name="(which|since|until)" value="([^"]+)"', words))
        client.post("/portal/deliveries/resend", form)
        assert set(Delivery.objects.filter(status="parked")) == {newest, oldest}

    @pytest.mark.parametrize(
        "form",
        [
            {},
            {"which": "parked"},
            {"which": "parked", "since": "soon"},
            {"which": "parked", "since": "2020-01-01T00:00:00Z", "until": "soon"},
            {"which": "one", "delivery": "x"},
        ],
    )
    def test_without_a_delivery_changes_nothing(
        self, client: Client, acme: Merchant, form: dict[str, str]
    ) -> None:
        saved(acme)
        stage.parked(acme)
        assert client.post("/portal/deliveries/resend", form, follow=True).status_code == 200
        assert Delivery.objects.get().status == "parked"

    def test_without_an_endpoint_says_so(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        delivery = stage.parked(acme)
        subscriptions.end(acme)
        form = {"which": "one", "delivery": str(delivery.pk)}
        assert "no endpoint" in client.post("/portal/deliveries/resend", form, follow=True).content.decode()
