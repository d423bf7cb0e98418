"""Personal data is sent only to addresses that an owner or admin chose or approved (rule endpoint.approved)."""

from datetime import timedelta

import pytest

from config.lib import clock
from payments.models import Merchant
from portal import keys, team
from portal.models import Membership, Role
from tests.conftest import Api
from tests.factories import CAUSE
from tests.portal import stage
from tests.portal.people import mails
from webhooks import delivery, outbox, resending, retention, subscriptions, url_check
from webhooks.delivery import Claims
from webhooks.models import Delivery, Event, EventType, Subscription
from webhooks.url_check import CheckedUrl

pytestmark = [pytest.mark.django_db, pytest.mark.rule("endpoint.approved")]
OURS, THEIRS = CheckedUrl("http://127.0.0.1:9/ours"), CheckedUrl("http://127.0.0.1:9/theirs")


def keep(merchant: Merchant, url: CheckedUrl, *, is_approved: bool) -> Subscription:
    return subscriptions.save_subscription(
        merchant, url=url, event_types=["*"], is_approved=is_approved
    ).subscription


def opt_in(merchant: Merchant) -> Delivery:
    event = outbox.emit(merchant, EventType.OPTED_IN, {"customer": {"email": "a@b.example"}}, at=clock.now())
    return Delivery.objects.get(event=event)


def claimed() -> Claims:
    return delivery.claim(slots=5, general_slots=5)


def answered(claims: Claims, http_status: int) -> Delivery:
    (one,) = claims
    delivery.record_results([delivery.Result(one.delivery_id, one.lease_token, http_status, None, 5)])
    return Delivery.objects.get(pk=one.delivery_id)


class TestWaiting:
    def test_lasts_until_the_address_is_approved(self, acme: Merchant) -> None:
        keep(acme, THEIRS, is_approved=False)
        waiting = opt_in(acme)
        assert claimed() == [] and waiting.next_attempt_at is None and waiting.status == "pending"
        assert subscriptions.approve(acme, THEIRS) == THEIRS
        (one,) = claimed()
        assert one.url == THEIRS and one.event_type == EventType.OPTED_IN

    def test_does_not_delay_other_events(self, acme: Merchant) -> None:
        keep(acme, THEIRS, is_approved=False)
        opt_in(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        assert [one.event_type for one in claimed()] == [EventType.VOIDED]

    def test_begins_for_what_is_pending_when_the_address_changes(self, acme: Merchant) -> None:
        keep(acme, OURS, is_approved=True)
        opt_in(acme)
        keep(acme, THEIRS, is_approved=False)
        assert claimed() == []
        keep(acme, OURS, is_approved=True)
        assert [one.url for one in claimed()] == [OURS]

    def test_starts_for_an_attempt_in_progress_when_it_fails(self, acme: Merchant) -> None:
        keep(acme, OURS, is_approved=True)
        opt_in(acme)
        under_way = claimed()
        keep(acme, THEIRS, is_approved=False)
        failed = answered(under_way, 500)
        assert (failed.status, failed.next_attempt_at) == ("pending", None)
        subscriptions.approve(acme, THEIRS)
        assert [one.attempt_number for one in claimed()] == [2]

    def test_holds_for_a_delivery_that_was_written_as_the_address_changed(self, acme: Merchant) -> None:
        """Check that a due delivery is not sent if the endpoint's new address is not approved.

        The delivery is due, because it was written before the change of address was committed. The claim checks
        the approval again.
        """
        keep(acme, OURS, is_approved=True)
        late = opt_in(acme)
        Subscription.objects.update(url=THEIRS, is_approved=False)
        assert Delivery.objects.get(pk=late.pk).next_attempt_at is not None and claimed() == []
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        assert [one.event_type for one in claimed()] == [EventType.VOIDED]

    def test_applies_to_a_delivery_that_is_sent_again(self, acme: Merchant) -> None:
        keep(acme, OURS, is_approved=True)
        first = opt_in(acme)
        answered(claimed(), 200)
        keep(acme, THEIRS, is_approved=False)
        again = resending.resend(acme, first.pk, cause=CAUSE, although_delivered=True)
        assert (again.status, again.next_attempt_at) == ("pending", None) and claimed() == []
        with pytest.raises(resending.AwaitsApproval):
            resending.resend(acme, first.pk, cause=CAUSE, although_delivered=True)
        subscriptions.approve(acme, THEIRS)
        assert [sent.url for sent in claimed()] == [THEIRS]

    def test_ends_parked_after_a_week(self, acme: Merchant) -> None:
        keep(acme, THEIRS, is_approved=False)
        with_age(timedelta(days=8), opt_in(acme))
        fresh = opt_in(acme)
        assert retention.park_unapproved() == 1
        assert Delivery.objects.exclude(pk=fresh.pk).get().status == "parked"
        assert Delivery.objects.get(pk=fresh.pk).status == "pending"

    def test_ends_parked_after_a_week_also_with_a_due_time(self, acme: Merchant) -> None:
        """Check that a delivery is parked even if it has a due time.

        The delivery has one if the address changed while the delivery was written.
        """
        keep(acme, OURS, is_approved=True)
        with_age(timedelta(days=8), opt_in(acme))
        Delivery.objects.update(next_attempt_at=clock.now())
        assert retention.park_unapproved() == 0
        Subscription.objects.update(is_approved=False)
        assert retention.park_unapproved() == 1 and Delivery.objects.get().status == "parked"

    def test_ends_for_a_delivery_that_the_approval_missed(self, acme: Merchant) -> None:
        keep(acme, THEIRS, is_approved=False)
        opt_in(acme)
        Subscription.objects.update(is_approved=True)
        assert claimed() == [] and retention.release_approved() == 1
        assert [one.url for one in claimed()] == [THEIRS]


def with_age(age: timedelta, waiting: Delivery) -> None:
    """Replace a delivery and its event by copies that are `age` older.

    The ids of the copies also contain the older time.
    """
    event = waiting.event
    old = clock.first_id(clock.now() - age)
    Event.objects.create(
        id=old, merchant=event.merchant, type=event.type, body=event.body, created_at=clock.now() - age
    )
    facts = {"merchant_id": waiting.merchant_id, "subscription_id": waiting.subscription_id}
    Delivery.objects.filter(pk=waiting.pk).delete()
    Delivery.objects.bulk_create(
        [Delivery(id=clock.new_id_of_same_time(old), event_id=old, event_type=EventType.OPTED_IN, **facts)]
    )


class TestApproval:
    def test_is_lost_with_another_address_and_kept_with_other_events(self, acme: Merchant) -> None:
        keep(acme, OURS, is_approved=True)
        same = subscriptions.save_subscription(
            acme, url=OURS, event_types=["checkout.voided"], is_approved=False
        )
        assert same.subscription.is_approved
        assert not keep(acme, THEIRS, is_approved=False).is_approved

    def test_is_not_inherited_by_a_new_subscription(self, acme: Merchant) -> None:
        keep(acme, OURS, is_approved=True)
        subscriptions.end(acme)
        assert not keep(acme, OURS, is_approved=False).is_approved

    def test_is_of_the_address_that_was_looked_at(self, acme: Merchant) -> None:
        keep(acme, THEIRS, is_approved=False)
        assert subscriptions.approve(acme, OURS) == ""
        assert not Subscription.objects.get().is_approved


class TestKey:
    """An API key can approve an endpoint only if everyone who knows its secrets can approve endpoints."""

    URL = {"url": "http://127.0.0.1:9/hooks", "event_types": ["*"]}

    def api(self, made: keys.NewClient) -> Api:
        return Api(made.client.merchant, made)

    @pytest.mark.parametrize(
        ("role", "is_approved"), [(Role.OWNER, True), (Role.ADMIN, True), (Role.DEVELOPER, False)]
    )
    def test_approves_with_the_rights_of_its_creator(
        self, acme: Merchant, role: Role, is_approved: bool
    ) -> None:
        made = keys.create(stage.person(acme, role), "Key", ["webhooks:write"])
        assert self.api(made).post("webhooks/subscription", self.URL).status_code == 201
        assert Subscription.objects.get().is_approved == is_approved

    def test_that_a_developer_rotated_approves_nothing(self, acme: Merchant) -> None:
        owner, developer = stage.person(acme, Role.OWNER), stage.person(acme, Role.DEVELOPER)
        made = keys.create(owner, "Key", ["webhooks:write"])
        keys.rotate(developer, made.client.pk)
        self.api(made).post("webhooks/subscription", self.URL)
        assert not Subscription.objects.get().is_approved, "the developer knows a secret of this key"

    def test_approves_again_once_an_owner_has_replaced_a_developers_secret(self, acme: Merchant) -> None:
        owner, developer = stage.person(acme, Role.OWNER), stage.person(acme, Role.DEVELOPER)
        made = keys.create(developer, "Key", ["webhooks:write"])
        owned = keys.rotate(owner, made.client.pk)
        keys.stop_previous(owner, made.client.pk)
        self.api(owned).post("webhooks/subscription", self.URL)
        assert Subscription.objects.get().is_approved

    def test_gives_no_token_for_a_developers_stopped_secret(self, acme: Merchant) -> None:
        owner, developer = stage.person(acme, Role.OWNER), stage.person(acme, Role.DEVELOPER)
        developers = self.api(keys.create(developer, "Key", ["webhooks:write"]))
        keys.rotate(owner, developers.key.client.pk)
        keys.stop_previous(owner, developers.key.client.pk)
        assert developers.post("webhooks/subscription", self.URL).status_code == 401
        assert not Subscription.objects.exists()

    def test_of_a_person_who_was_demoted_approves_nothing(self, acme: Merchant) -> None:
        owner, admin = stage.person(acme, Role.OWNER), stage.person(acme, Role.ADMIN)
        made = keys.create(admin, "Key", ["webhooks:write"])
        team.change_role(owner, admin.pk, Role.DEVELOPER)
        self.api(made).post("webhooks/subscription", self.URL)
        assert not Subscription.objects.get().is_approved


class TestPortal:
    FORM = {"url": THEIRS, "event_types": ["checkout.voided", "marketing.opted_in"]}

    def test_has_owners_mailed_about_a_developers_address_and_approve_it(self, acme: Merchant) -> None:
        owner = stage.person(acme, Role.OWNER, "lea@acme.example")
        keep(acme, OURS, is_approved=True)
        stage.browser(stage.person(acme, Role.DEVELOPER)).post("/portal/webhooks/endpoint", self.FORM)
        opt_in(acme)
        assert claimed() == []
        (mail,) = mails()
        assert mail.to == ["lea@acme.example"] and "wait until an owner or admin approves" in mail.body
        browser = stage.browser(owner)
        assert "Approve this address" in browser.get("/portal/webhooks").content.decode()
        browser.post("/portal/webhooks/approve", {"url": THEIRS})
        assert [one.url for one in claimed()] == [THEIRS]
        assert "Approve this address" not in browser.get("/portal/webhooks").content.decode()

    def test_approves_an_admins_own_address(self, acme: Merchant) -> None:
        stage.browser(stage.person(acme, Role.ADMIN)).post("/portal/webhooks/endpoint", self.FORM)
        assert Subscription.objects.get().is_approved

    @pytest.mark.parametrize("role", [Role.VIEWER, None])
    def test_checks_the_role_again_after_the_address_check(
        self, acme: Merchant, monkeypatch: pytest.MonkeyPatch, role: Role | None
    ) -> None:
        """Check that the role is read again after the address check.

        The owner of the address controls how long this check takes, and the role can change in this time.
        """
        admin = stage.person(acme, Role.ADMIN)

        def slow_check(*_: object) -> CheckedUrl:
            rows = Membership.objects.filter(pk=admin.pk)
            rows.update(role=role) if role else rows.delete()
            return THEIRS

        monkeypatch.setattr(url_check, "check_merchant_url", slow_check)
        assert stage.browser(admin).post("/portal/webhooks/endpoint", self.FORM).status_code == 403
        assert not Subscription.objects.exists()

    def test_shows_a_developer_no_way_to_approve(self, acme: Merchant) -> None:
        keep(acme, THEIRS, is_approved=False)
        browser = stage.browser(stage.person(acme, Role.DEVELOPER))
        page = browser.get("/portal/webhooks").content.decode()
        assert "gets no personal data yet" in page and "Approve this address" not in page
        assert browser.post("/portal/webhooks/approve", {"url": THEIRS}).status_code == 403
        assert not Subscription.objects.get().is_approved

    def test_refuses_an_approval_of_an_address_that_has_changed(self, acme: Merchant) -> None:
        keep(acme, THEIRS, is_approved=False)
        browser = stage.browser(stage.person(acme, Role.OWNER))
        page = browser.post("/portal/webhooks/approve", {"url": OURS}, follow=True).content.decode()
        assert "has changed since" in page and not Subscription.objects.get().is_approved
