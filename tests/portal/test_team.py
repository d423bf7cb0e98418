import pytest
from django.test import Client

from payments.models import Merchant
from portal import access, team
from portal.models import Membership, Role
from tests.portal import stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(acme: Merchant) -> Membership:
    return stage.person(acme, Role.OWNER)


@pytest.fixture
def client(owner: Membership) -> Client:
    return stage.browser(owner)


@pytest.mark.rule("portal.last_owner")
class TestOwner:
    def test_the_last_one_stays(self, client: Client, owner: Membership) -> None:
        for address, form in ((f"{owner.pk}/role", {"role": "viewer"}), (f"{owner.pk}/remove", {})):
            page = client.post(f"/portal/team/{address}", form, follow=True)
            assert "the last owner" in page.content.decode()
        owner.refresh_from_db()
        assert owner.role == Role.OWNER

    def test_may_leave_when_there_is_another(self, acme: Merchant, client: Client, owner: Membership) -> None:
        stage.person(acme, Role.OWNER, "second@acme.example")
        client.post(f"/portal/team/{owner.pk}/remove")
        assert not Membership.objects.filter(pk=owner.pk).exists()
        assert client.get("/portal").status_code == 403

    def test_is_made_by_owners_alone(self, acme: Merchant, owner: Membership) -> None:
        admin = stage.person(acme, Role.ADMIN)
        for change in (
            lambda: team.change(admin, admin.pk, Role.OWNER),
            lambda: team.change(admin, owner.pk, Role.VIEWER),
            lambda: team.remove(admin, owner.pk),
            lambda: team.invite(admin, "new@acme.example", Role.OWNER),
        ):
            with pytest.raises(team.TeamRefused, match="Only an owner"):
                change()
        assert Membership.objects.filter(role="owner").count() == 1

    def test_role_is_looked_at_again_under_the_lock(self, acme: Merchant, owner: Membership) -> None:
        second = stage.person(acme, Role.OWNER, "second@acme.example")
        team.change(second, owner.pk, Role.VIEWER)
        with pytest.raises(access.NotAllowed):
            team.remove(owner, second.pk)
        with pytest.raises(access.NotAllowed):
            team.invite(owner, "new@acme.example", Role.OWNER)
