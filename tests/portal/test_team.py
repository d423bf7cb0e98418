import re
from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from payments.models import Merchant
from portal import access, team
from portal.models import Invitation, Membership, OutboundEmail, Role
from tests.portal import stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(owner: Membership) -> Client:
    return stage.browser(owner)


@pytest.mark.rule("portal.last_owner")
class TestOwner:
    def test_the_last_owner_cannot_be_removed(self, client: Client, owner: Membership) -> None:
        for address, form in ((f"{owner.pk}/role", {"role": "viewer"}), (f"{owner.pk}/remove", {})):
            page = client.post(f"/portal/team/{address}", form, follow=True)
            assert "the last owner" in page.content.decode()
        owner.refresh_from_db()
        assert owner.role == Role.OWNER

    def test_can_leave_if_there_is_another_owner(
        self, acme: Merchant, client: Client, owner: Membership
    ) -> None:
        stage.person(acme, Role.OWNER, "second@acme.example")
        client.post(f"/portal/team/{owner.pk}/remove")
        assert not Membership.objects.filter(pk=owner.pk).exists()
        assert client.get("/portal").status_code == 403

    def test_can_be_appointed_only_by_owners(self, acme: Merchant, owner: Membership) -> None:
        admin = stage.person(acme, Role.ADMIN)
        for change in (
            lambda: team.change_role(admin, admin.pk, Role.OWNER),
            lambda: team.change_role(admin, owner.pk, Role.VIEWER),
            lambda: team.remove(admin, owner.pk),
            lambda: team.invite(admin, "new@acme.example", Role.OWNER),
        ):
            with pytest.raises(team.TeamRefused, match="Only an owner"):
                change()
        assert Membership.objects.filter(role="owner").count() == 1

    def test_role_is_checked_again_under_the_lock(self, acme: Merchant, owner: Membership) -> None:
        second = stage.person(acme, Role.OWNER, "second@acme.example")
        team.change_role(second, owner.pk, Role.VIEWER)
        with pytest.raises(access.NotAllowed):
            team.remove(owner, second.pk)
        with pytest.raises(access.NotAllowed):
            team.invite(owner, "new@acme.example", Role.OWNER)


@pytest.mark.rule("limit.invitations")
class TestMails:
    def invite(self, owner: Membership, email: str) -> None:
        """Invite a person, and withdraw the invitation once the mail is queued."""
        team.withdraw_invitation(owner.merchant, team.invite(owner, email, Role.VIEWER).pk)

    def refused(self, client: Client, email: str) -> str:
        """Send an invitation that is refused, and return the error on the page."""
        page = client.post("/portal/team/invite", {"email": email, "role": "viewer"})
        assert page.status_code == 422
        (words,) = re.findall(r"Too many invitations[^<]*", page.content.decode())
        return str(words)

    def test_to_one_address_are_three_a_day(self, client: Client, owner: Membership) -> None:
        for email in ("dora@acme.example", "Dora@acme.example", "DORA@ACME.EXAMPLE"):
            self.invite(owner, email)
        words = "Too many invitations to this address in a day. Invite this person again in 24 hours."
        assert self.refused(client, "dora@acme.example") == words
        self.invite(owner, "else@acme.example")
        Invitation.objects.update(created_at=F("created_at") - timedelta(hours=23))
        assert self.refused(client, "dora@acme.example").endswith("again in an hour.")
        Invitation.objects.update(created_at=F("created_at") - timedelta(hours=1))
        self.invite(owner, "dora@acme.example")

    def test_of_a_merchant_are_fifty_a_day(self, client: Client, owner: Membership, rival: Merchant) -> None:
        for number in range(50):
            self.invite(owner, f"{number}@acme.example")
        words = "Too many invitations in a day. Invite the next one in 24 hours."
        assert self.refused(client, "dora@acme.example") == words
        assert OutboundEmail.objects.count() == 50
        self.invite(stage.person(rival, Role.OWNER), "dora@acme.example")
