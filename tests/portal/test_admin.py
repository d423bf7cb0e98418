"""An operator who is not a superuser cannot gain further rights or discover secrets in the admin."""

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.contrib.sessions.models import Session
from django.db.models import Field, Model
from django.test import Client, RequestFactory
from django.utils import timezone

from checkout.models import Customer
from config.lib.admin.readonly import OperatorAdmin
from payments.models import Merchant
from portal.models import User
from tests.portal import people

pytestmark = pytest.mark.django_db
USERS = "/admin/portal/user/"
ALL_RIGHTS = {"is_active": "on", "is_staff": "on", "is_superuser": "on"}


@pytest.fixture
def helper(client: Client) -> User:
    """Return an operator who has all permissions and a fresh proof of identity, but is not a superuser."""
    helper = User.objects.create_user("helper@operators.example", people.PASSWORD, is_staff=True)
    helper.user_permissions.set(Permission.objects.all())
    return people.operate(client, helper)


@pytest.fixture
def chief() -> User:
    return User.objects.create_superuser("chief@operators.example", people.PASSWORD)


def rights_of(person: User) -> tuple[Any, ...]:
    person = User.objects.get(pk=person.pk)
    permissions = person.user_permissions.count()
    return (
        person.email,
        person.is_active,
        person.is_staff,
        person.is_superuser,
        permissions,
        person.groups.count(),
    )


class TestRights:
    @pytest.mark.rule("operator.rights")
    def test_cannot_be_granted_by_an_operator_who_lacks_them(
        self, client: Client, helper: User, acme: Merchant
    ) -> None:
        lea, group = people.join(acme), Group.objects.create(name="Everything")
        right = str(Permission.objects.get(codename="view_checkout").pk)
        form = {"email": lea.email, "groups": [str(group.pk)], "user_permissions": [right], **ALL_RIGHTS}
        assert client.post(f"{USERS}{lea.pk}/change/", form).status_code == 302
        assert rights_of(lea) == (people.EMAIL, True, False, False, 0, 0)
        added = {"email": "friend@example.com", "groups": [str(group.pk)], **ALL_RIGHTS}
        assert client.post(f"{USERS}add/", added).status_code == 302
        assert rights_of(User.objects.get(email="friend@example.com"))[2:] == (False, False, 0, 0)

    @pytest.mark.parametrize("whose", ["own", "another's", "the chief's"])
    def test_of_other_operators_cannot_be_changed(
        self, client: Client, helper: User, chief: User, whose: str
    ) -> None:
        other = User.objects.create_user("other@operators.example", is_staff=True)
        person = {"own": helper, "another's": other, "the chief's": chief}[whose]
        before = rights_of(person)
        form = {"email": "mine@evil.example", **ALL_RIGHTS}
        assert client.post(f"{USERS}{person.pk}/change/", form).status_code == 403
        assert client.post(f"{USERS}{person.pk}/delete/", {"post": "yes"}).status_code == 403
        assert rights_of(person) == before
        assert client.get(f"{USERS}{person.pk}/change/").status_code == 200

    def test_of_groups_cannot_be_changed_either(self, client: Client, helper: User) -> None:
        group = Group.objects.create(name="Everything")
        address = f"/admin/auth/group/{group.pk}/"
        form = {"name": "Mine", "permissions": ["1"]}
        for there in ("/admin/auth/group/add/", f"{address}change/"):
            assert client.post(there, form).status_code == 403
        assert client.post(f"{address}delete/", {"post": "yes"}).status_code == 403
        assert [(found.name, found.permissions.count()) for found in Group.objects.all()] == [
            ("Everything", 0)
        ]

    def test_do_not_allow_to_remove_second_factors_of_operators(
        self, client: Client, helper: User, chief: User, acme: Merchant
    ) -> None:
        lea = people.join(acme)
        people.set_up_app(chief)
        people.set_up_app(lea)
        for person, status in ((chief, 403), (lea, 302)):
            for row in Authenticator.objects.filter(user=person):
                address = f"/admin/mfa/authenticator/{row.pk}/delete/"
                assert client.post(address, {"post": "yes"}).status_code == status
        assert {row.user for row in Authenticator.objects.all()} == {chief}

    def test_can_be_granted_by_a_superuser(self, client: Client, chief: User, acme: Merchant) -> None:
        people.operate(client, chief)
        lea = people.join(acme)
        client.post(f"{USERS}{lea.pk}/change/", {"email": lea.email, **ALL_RIGHTS})
        assert rights_of(lea)[:4] == (people.EMAIL, True, True, True)
        right = str(Permission.objects.get(codename="view_checkout").pk)
        client.post("/admin/auth/group/add/", {"name": "Helpers", "permissions": [right]})
        assert Group.objects.get().permissions.count() == 1


class TestSessions:
    def test_can_be_ended_by_operators(
        self, client: Client, helper: User, chief: User, acme: Merchant
    ) -> None:
        people.join(acme)
        theirs, chiefs = Client(), Client()
        people.log_in(theirs)
        people.log_in(chiefs, email=chief.email)
        for email, status in ((chief.email, 403), (people.EMAIL, 302)):
            row = UserSession.objects.get(user__email=email)
            address = f"/admin/usersessions/usersession/{row.pk}/delete/"
            assert client.post(address, {"post": "yes"}).status_code == status
        assert not people.is_in(theirs) and chiefs.get("/admin/").status_code == 200
        assert not Session.objects.filter(session_key=theirs.cookies["sessionid"].value).exists()

    def test_have_a_button_that_ends_them_and_the_browser_in_words(
        self, client: Client, chief: User, acme: Merchant
    ) -> None:
        people.join(acme)
        people.log_in(Client(headers={"user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}))
        people.operate(client, chief)
        row = UserSession.objects.get(user__email=people.EMAIL)
        page = client.get(f"/admin/usersessions/usersession/{row.pk}/change/").content.decode()
        assert f'href="/admin/usersessions/usersession/{row.pk}/delete/"' in page
        listed = client.get("/admin/usersessions/usersession/").content.decode()
        for shown in (page, listed):
            assert "Firefox on Linux" in shown and "Mozilla/5.0" not in shown

    @pytest.mark.rule("portal.sessions")
    def test_end_for_good_when_their_person_is_deactivated(
        self, client: Client, chief: User, acme: Merchant
    ) -> None:
        lea, theirs = people.join(acme), Client()
        people.log_in(theirs)
        people.operate(client, chief)
        for rights in ({}, {"is_active": "on"}):
            assert client.post(f"{USERS}{lea.pk}/change/", {"email": lea.email, **rights}).status_code == 302
        lea.refresh_from_db()
        assert lea.is_active and not people.is_in(theirs)

    def test_of_unused_accounts_are_shown_and_not_enabled_by_hand(
        self, client: Client, chief: User, acme: Merchant
    ) -> None:
        lea, now = people.join(acme), timezone.now()
        User.objects.filter(pk=lea.pk).update(disabled_for_disuse_at=now)
        people.operate(client, chief)
        form = {"email": lea.email, "is_active": "on", "disabled_for_disuse_at": ""}
        assert client.post(f"{USERS}{lea.pk}/change/", form).status_code == 302
        lea.refresh_from_db()
        assert lea.disabled_for_disuse_at == now
        page = client.get(f"{USERS}{lea.pk}/change/").content.decode()
        assert "Disabled as unused" in page and "Warned about disuse" in page and "Is active" not in page


class TestPeople:
    def test_are_listed_with_their_state_in_words(self, client: Client, chief: User, acme: Merchant) -> None:
        lea = people.join(acme)
        people.operate(client, chief)
        page = client.get(USERS).content.decode()
        assert "icon-no" not in page and ">Operator</td>" in page and ">Active</td>" in page
        User.objects.filter(pk=lea.pk).update(is_active=False)
        assert ">Closed</td>" in client.get(USERS).content.decode()
        User.objects.filter(pk=lea.pk).update(disabled_for_disuse_at=timezone.now())
        assert ">Disabled as unused</td>" in client.get(USERS).content.decode()


class TestGuessing:
    def test_no_page_of_a_library_is_shown(self) -> None:
        assert all(isinstance(shown, OperatorAdmin) for shown in admin.site._registry.values())
        assert not admin.site.is_registered(EmailAddress)

    @pytest.mark.rule("operator.rights")
    def test_of_secrets_is_refused_on_every_list(self, client: Client, chief: User) -> None:
        """No list in the admin allows a lookup with which a person could guess a secret.

        To save time, the test sends only the first lookup of each list as a request. It tests all lookups by calls of
        `lookup_allowed`.
        """
        people.operate(client, chief)
        for model, shown in admin.site._registry.items():
            address, lookups = f"/admin/{model._meta.app_label}/{model._meta.model_name}/", guesses(model)
            assert client.get(f"{address}?{lookups[0]}=a").status_code == 400, address
            asked = RequestFactory().get(address)
            asked.user = chief
            assert not [lookup for lookup in lookups if shown.lookup_allowed(lookup, "a", asked)], address


def guesses(model: type[Model]) -> list[str]:
    """Return a prefix lookup for each field of the model.

    For a reference to a user, the lookup uses the prefix of the password. For a reference to a customer, it uses the
    prefix of the phone number.
    """
    found = []
    for field in model._meta.get_fields():
        if isinstance(field, Field) and not field.is_relation:
            found.append(f"{field.name}__startswith")
        elif field.related_model is User:
            found.append(f"{field.name}__password__startswith")
        elif field.related_model is Customer and isinstance(field, Field):
            found.append(f"{field.name}__phone__startswith")
    return found


def test_adding_a_person_begins_with_the_email(operator: Client) -> None:
    page = operator.get(f"{USERS}add/").content.decode()
    assert page.index('name="email"') < page.index('name="is_superuser"') < page.index('aria-label="Groups"')
    assert "field-date_joined" not in page


def test_an_added_person_sets_a_password_by_mail_as_the_page_says(operator: Client) -> None:
    told = operator.get(f"{USERS}add/").content.decode()
    assert "The service sends no email to the new user." in told and "“Forgot it?”" in told
    email, new = "new@operators.example", "another bill on the table"
    assert operator.post(f"{USERS}add/", {"email": email, "is_active": "on"}).status_code == 302
    assert not User.objects.get(email=email).has_usable_password() and people.mails() == []
    theirs = Client()
    assert ">Forgot it?</a>" in theirs.get("/accounts/login/").content.decode()
    theirs.post("/accounts/password/reset/", {"email": email})
    form = theirs.get(people.mailed(r"/accounts/password/reset/key/\S+"), follow=True).redirect_chain[-1][0]
    theirs.post(form, {"password1": new, "password2": new})
    assert people.log_in(Client(), new, email=email).status_code == 302


def test_a_second_role_at_a_merchant_is_refused_in_words(operator: Client, acme: Merchant) -> None:
    lea, address = people.join(acme), "/admin/portal/membership/add/"
    assert "If the person is not a user yet, add the user first." in operator.get(address).content.decode()
    answer = operator.post(address, {"user": str(lea.pk), "merchant": str(acme.pk), "role": "viewer"})
    page = answer.content.decode()
    assert answer.status_code == 200 and "This user has a role at this merchant already." in page
    assert "one_role_per_person" not in page and lea.memberships.get().role == "owner"
