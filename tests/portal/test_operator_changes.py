"""Operators' changes to a merchant and its people: who may make them, what is recorded, and who gets a mail."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from payments.models import Merchant
from portal import keys, team
from portal.models import AuditEntry, Invitation, Membership, Role, User
from tests.portal import people, stage

pytestmark = pytest.mark.django_db
RIGHTS = (
    *("view_membership", "add_membership", "change_membership", "delete_membership"),
    *("view_user", "change_user", "delete_user", "view_merchant", "change_merchant"),
    *("view_authenticator", "delete_authenticator"),
)


@pytest.fixture
def delegate(client: Client) -> Client:
    """Return the browser of an operator who has all RIGHTS about people but is not a superuser."""
    user = User.objects.create_user("delegate@service.example", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=RIGHTS))
    people.operate(client, user)
    return client


@pytest.fixture
def owner(acme: Merchant) -> Membership:
    return stage.person(acme, Role.OWNER, "lea@acme.example")


def entries(merchant: Merchant) -> list[tuple[str, str]]:
    return [
        (entry.action, entry.actor_name)
        for entry in AuditEntry.objects.filter(merchant=merchant).order_by("pk")
    ]


def mailed() -> list[tuple[list[str], str]]:
    return [(mail.to, mail.subject.replace("TEST · ", "")) for mail in people.mails()]


def change_user(client: Client, person: User, **fields: Any) -> Any:
    form = {"email": person.email, "is_active": "on"} | fields
    form = {name: value for name, value in form.items() if value is not None}
    return client.post(f"/admin/portal/user/{person.pk}/change/", form)


@pytest.mark.rule("operator.rights")
class TestDelegate:
    def test_cannot_grant_change_or_remove_a_role(
        self, delegate: Client, acme: Merchant, owner: Membership
    ) -> None:
        mine = User.objects.get(email="delegate@service.example")
        form = {"user": str(mine.pk), "merchant": str(acme.pk), "role": "owner"}
        assert delegate.post("/admin/portal/membership/add/", form).status_code == 403
        invite = {"action": "invite_owner", "_selected_action": str(acme.pk), "confirmed": "1"}
        delegate.post("/admin/payments/merchant/", invite | {"words": "mine@evil.example"})
        assert not Invitation.objects.exists()
        path = f"/admin/portal/membership/{owner.pk}"
        assert delegate.post(f"{path}/change/", {"role": "viewer"}).status_code == 403
        assert delegate.post(f"{path}/delete/", {"post": "yes"}).status_code == 403
        assert list(Membership.objects.values_list("user__email", "role")) == [("lea@acme.example", "owner")]

    def test_cannot_change_an_email_address_or_delete_a_person(
        self, delegate: Client, owner: Membership
    ) -> None:
        change_user(delegate, owner.user, email="mine@evil.example")
        delegate.post(f"/admin/portal/user/{owner.user_id}/delete/", {"post": "yes"})
        assert User.objects.get(pk=owner.user_id).email == "lea@acme.example"

    def test_cannot_change_a_merchants_provider_account(self, delegate: Client, acme: Merchant) -> None:
        form = stage.FORM | {"provider_account": "acct_evil"}
        delegate.post(f"/admin/payments/merchant/{acme.pk}/change/", form)
        assert Merchant.objects.get(pk=acme.pk).provider_account == ""


@pytest.mark.rule("operator.recorded")
class TestChange:
    def test_of_a_role_is_in_both_logs_and_mailed_to_the_owners(
        self, operator: Client, acme: Merchant, owner: Membership
    ) -> None:
        new = User.objects.create_user("mo@acme.example")
        form = {"user": str(new.pk), "merchant": str(acme.pk), "role": "admin"}
        assert operator.post("/admin/portal/membership/add/", form).status_code == 302
        assert entries(acme) == [("role_changed", "Our support")]
        assert LogEntry.objects.filter(content_type__model="membership").count() == 1
        (sent,) = people.mails()
        assert sent.to == ["lea@acme.example"]
        assert sent.subject.endswith("Acme Tickets: role of mo@acme.example changed")
        assert sent.body.startswith("Our support changed a person’s role: mo@acme.example is an admin.\n")
        assert "From:" not in sent.body
        address = settings.SUPPORT_EMAIL
        assert f"If you did not ask for this, write to our support at {address} now, and quote" in sent.body

    def test_that_invites_the_first_owner_sends_the_teams_invitation(
        self, operator: Client, acme: Merchant
    ) -> None:
        chosen = {"action": "invite_owner", "_selected_action": str(acme.pk), "confirmed": "1"}
        merchants = "/admin/payments/merchant/"
        page = operator.post(merchants, chosen | {"words": "mara"}, follow=True).content.decode()
        assert "<h1>Invite an owner of Acme Tickets?</h1>" in page and people.mails() == []
        assert "<span>Enter an e-mail address, such as name@example.com.</span>" in page
        assert '<label class="field-label" for="id_words">Owner’s e-mail ' in page
        field = next(line for line in page.splitlines() if 'name="words"' in line)
        assert 'value="mara"' in field and 'aria-invalid="true"' in field
        page = operator.post(merchants, chosen | {"words": "mara@acme.example"}, follow=True).content.decode()
        assert "mara@acme.example is invited as an owner." in page
        (sent,) = people.mails()
        assert sent.to == ["mara@acme.example"]
        assert "Merchant Checkout invites you to join Acme Tickets as an owner." in sent.body
        assert "operator@example.com" not in sent.body and "If you did not ask" not in sent.body
        assert entries(acme) == [("person_invited", "Our support")]
        link = next(line for line in sent.body.splitlines() if "/join/" in line)
        joined, path = Client(), urlsplit(link).path
        assert "Merchant Checkout invites you to join as an owner." in joined.get(path).content.decode()
        joined.post(path, {"password": people.PASSWORD})
        assert Membership.objects.get(merchant=acme).role == Role.OWNER
        again = operator.post(merchants, chosen | {"words": "mara@acme.example"}, follow=True)
        assert "in the team already" in again.content.decode()

    def test_to_a_lower_role_lists_the_persons_keys(
        self, operator: Client, acme: Merchant, owner: Membership
    ) -> None:
        admin = stage.person(acme, Role.ADMIN)
        key = keys.create(admin, "Till", ["checkouts:read"]).client
        operator.post(f"/admin/portal/membership/{admin.pk}/change/", {"role": "viewer"})
        assert Membership.objects.get(pk=admin.pk).role == "viewer"
        assert any(key.client_id in mail.body for mail in people.mails())

    def test_that_removes_a_person_is_recorded(
        self, operator: Client, acme: Merchant, owner: Membership
    ) -> None:
        viewer = stage.person(acme, Role.VIEWER)
        operator.post(f"/admin/portal/membership/{viewer.pk}/delete/", {"post": "yes"})
        assert entries(acme) == [("person_removed", "Our support")]
        assert not Membership.objects.filter(pk=viewer.pk).exists()

    def test_of_an_email_informs_the_owners_and_the_previous_address(
        self, operator: Client, acme: Merchant, owner: Membership
    ) -> None:
        person = stage.person(acme, Role.DEVELOPER, "dev@acme.example").user
        assert change_user(operator, person, email="new@acme.example").status_code == 302
        entry = AuditEntry.objects.get()
        assert entry.action == "email_changed"
        assert entry.facts == {"before": "dev@acme.example", "email": "new@acme.example"}
        assert sorted(mailed()) == [
            (["dev@acme.example"], "Your e-mail address was changed"),
            (["lea@acme.example"], "Acme Tickets: e-mail address of new@acme.example changed"),
        ]
        assert LogEntry.objects.filter(object_id=str(person.pk)).exists()

    def test_that_closes_an_account_is_recorded(
        self, operator: Client, acme: Merchant, owner: Membership
    ) -> None:
        person = stage.person(acme, Role.ADMIN).user
        key = keys.create(person.memberships.get(), "Till", ["checkouts:read"]).client
        change_user(operator, person, is_active=None)
        assert entries(acme) == [("account_closed", "Our support")]
        assert any(key.client_id in mail.body for mail in people.mails())
        change_user(operator, person)
        assert entries(acme)[1] == ("account_opened", "Our support")

    def test_that_closes_an_account_ends_the_persons_invitations(
        self, operator: Client, acme: Merchant, owner: Membership
    ) -> None:
        admin = stage.person(acme, Role.ADMIN)
        for inviter in (admin, owner):
            team.invite(inviter, f"friend-of-{inviter.role}@acme.example", Role.ADMIN)
        change_user(operator, admin.user, is_active=None)
        assert Membership.objects.get(pk=admin.pk).role == Role.ADMIN
        open_invitations = Invitation.objects.filter(ended_at=None)
        assert [row.email for row in open_invitations] == ["friend-of-owner@acme.example"]

    def test_that_deletes_a_second_factor_informs_its_person(
        self, delegate: Client, acme: Merchant, owner: Membership
    ) -> None:
        person = stage.person(acme, Role.DEVELOPER, "dev@acme.example").user
        people.set_up_app(person)
        factor = Authenticator.objects.get(user=person, type="totp")
        delegate.post(f"/admin/mfa/authenticator/{factor.pk}/delete/", {"post": "yes"})
        assert entries(acme) == [("second_factor_deleted", "Our support")]
        assert (["dev@acme.example"], "A second factor was removed") in mailed()

    def test_of_a_stop_is_in_the_merchants_audit_log(
        self, operator: Client, acme: Merchant, owner: Membership
    ) -> None:
        for action in ("suspend", "resume"):
            chosen = {"action": action, "_selected_action": str(acme.pk), "confirmed": "1", "words": "Fraud?"}
            operator.post("/admin/payments/merchant/", chosen)
        assert entries(acme) == [("payments_stopped", "Our support"), ("payments_resumed", "Our support")]
        page = stage.browser(owner).get("/portal/audit").content.decode()
        assert "Stopped payments" in page and "Resumed payments" in page
        assert "Fraud?" not in page, "the reason is a note for operators"

    def test_of_a_merchants_settings_is_recorded_and_mailed(
        self, operator: Client, acme: Merchant, owner: Membership
    ) -> None:
        form = stage.FORM | {"provider_account": "acct_2", "shop_url": "https://other.example"}
        assert operator.post(f"/admin/payments/merchant/{acme.pk}/change/", form).status_code == 302
        assert {"shop_url", "provider_account"} <= set(AuditEntry.objects.get().facts["fields"])
        ((to, subject),) = mailed()
        assert to == ["lea@acme.example"] and "the shop’s address" in subject

    def test_does_not_tell_a_merchant_which_operator_acted(
        self, operator: Client, acme: Merchant, owner: Membership
    ) -> None:
        viewer = stage.person(acme, Role.VIEWER)
        operator.post(f"/admin/portal/membership/{viewer.pk}/delete/", {"post": "yes"})
        page = stage.browser(owner).get("/portal/audit").content.decode()
        assert "Our support" in page and "operator@example.com" not in page
        assert AuditEntry.objects.get().address is None
