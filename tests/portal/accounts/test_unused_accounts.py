"""Unused accounts: the warning, disabling them after 90 days, and enabling them again."""

import re
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings as service
from django.test import Client
from django.utils import timezone

from payments.models import Merchant
from portal import tasks
from portal.mail import outbox
from portal.models import AuditEntry, OutboundEmail, Role, User
from tests.portal import people
from tests.portal.people import EMAIL, PASSWORD

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.unused_accounts")]
NEW = "another bill on the table"


@pytest.fixture
def disabled(lea: User) -> User:
    pass_days(lea, 90)
    tasks.disable_unused_accounts()
    pass_days(lea, 14)
    tasks.disable_unused_accounts()
    people.mails()
    lea.refresh_from_db()
    assert lea.disabled_for_disuse_at
    return lea


def pass_days(user: User, days: int) -> None:
    """Simulate that days have passed: move the times of the person's account back."""
    user.refresh_from_db()
    for name in ("last_login", "date_joined", "disuse_warned_at"):
        if moment := getattr(user, name):
            setattr(user, name, moment - timedelta(days=days))
    user.save()


def subjects() -> list[str]:
    return [str(sent.subject).removeprefix("TEST · ") for sent in people.mails()]


def give_code(client: Client) -> str:
    """Request a code by e-mail and enter it. Return the address to which the response redirects."""
    client.post("/accounts/login/code/", {"email": EMAIL})
    code = people.mailed(r"\b\d{8}\b")
    return str(client.post("/accounts/login/code/confirm/", {"code": code})["Location"])


class TestEnd:
    def test_is_announced_fourteen_days_before(self, client: Client, lea: User) -> None:
        people.log_in(client)
        pass_days(lea, 75)
        tasks.disable_unused_accounts()
        assert subjects() == []
        pass_days(lea, 1)
        for _ in range(2):
            tasks.disable_unused_accounts()
        assert subjects() == ["Log in to keep your account"]
        body = str(people.mails()[-1].body)
        assert f"{timezone.now() + timedelta(days=14):%-d %B %Y}" in body and "(sandbox)" in body
        assert people.mails()[-1].to == [EMAIL]

    @pytest.mark.parametrize("has_logged_in", [True, False])
    def test_comes_after_ninety_days_with_a_mail_and_an_entry(
        self, client: Client, acme: Merchant, lea: User, has_logged_in: bool
    ) -> None:
        if has_logged_in:
            people.log_in(client)
        pass_days(lea, 76)
        tasks.disable_unused_accounts()
        pass_days(lea, 13)
        tasks.disable_unused_accounts()
        lea.refresh_from_db()
        assert lea.disabled_for_disuse_at is None
        pass_days(lea, 1)
        tasks.disable_unused_accounts()
        lea.refresh_from_db()
        assert lea.disabled_for_disuse_at and lea.is_active
        assert subjects() == ["Log in to keep your account", "Your account is disabled"]
        entry = AuditEntry.objects.get(action="account_disabled")
        assert (entry.merchant, entry.user, entry.address) == (acme, lea, None)

    def test_never_comes_without_fourteen_days_of_notice(self, lea: User) -> None:
        pass_days(lea, 1000)
        for _ in range(2):
            tasks.disable_unused_accounts()
        lea.refresh_from_db()
        assert lea.disuse_warned_at and not lea.disabled_for_disuse_at

    def test_is_cancelled_by_a_login(self, client: Client, lea: User) -> None:
        pass_days(lea, 89)
        tasks.disable_unused_accounts()
        people.log_in(client)
        lea.refresh_from_db()
        assert lea.disuse_warned_at is None
        tasks.disable_unused_accounts()
        assert not User.objects.exclude(disabled_for_disuse_at=None).exists()

    def test_comes_to_operators_too(self) -> None:
        operator = User.objects.create_superuser("operator@example.com", PASSWORD)
        pass_days(operator, 90)
        tasks.disable_unused_accounts()
        pass_days(operator, 14)
        tasks.disable_unused_accounts()
        operator.refresh_from_db()
        assert operator.disabled_for_disuse_at

    def test_ends_the_sessions(self, client: Client, lea: User) -> None:
        people.log_in(client)
        pass_days(lea, 90)
        tasks.disable_unused_accounts()
        pass_days(lea, 14)
        tasks.disable_unused_accounts()
        assert not people.is_in(client) and not UserSession.objects.exists()

    def test_does_not_stop_the_owners_mails_and_keys(self, acme: Merchant) -> None:
        made = people.create_merchant("Night Ferries", "--email", "noa@ferries.example")
        client_id, secret = re.findall(r"client_(?:id|secret)\s+(\S+)", made)
        noa = User.objects.get(email="noa@ferries.example")
        pass_days(noa, 90)
        tasks.disable_unused_accounts()
        pass_days(noa, 14)
        tasks.disable_unused_accounts()
        merchant = Merchant.objects.get(name="Night Ferries")
        outbox.queue_once(
            merchant, "endpoint_failing", key="1", url="x", error="x", since="2026-01-01T00:00:00Z"
        )
        assert people.mails()[-1].to == [noa.email] and "endpoint" in str(people.mails()[-1].subject)
        assert people.get_token(client_id, secret) == 200

    def test_does_not_apply_to_a_closed_account(self, lea: User) -> None:
        User.objects.update(is_active=False)
        pass_days(lea, 200)
        tasks.disable_unused_accounts()
        assert not OutboundEmail.objects.exists()

    def test_is_shown_to_the_team(self, client: Client, acme: Merchant, disabled: User) -> None:
        people.join(acme, Role.ADMIN, "mia@acme.example")
        people.log_in(client, email="mia@acme.example")
        assert "Disabled: they have not logged in for 90 days" in client.get("/portal/team").content.decode()


class TestReactivation:
    def test_password_without_a_code_leads_to_a_mailed_code(self, client: Client, disabled: User) -> None:
        answer = people.log_in(client)
        assert answer["Location"] == "/accounts/login/code/"
        page = client.get(answer["Location"]).content.decode()
        assert "was not used for 90 days" in page and "code by e-mail" in page
        assert not people.is_in(client)

    def test_wrong_password_reveals_nothing(self, client: Client, disabled: User) -> None:
        known, unknown = people.log_in(client, "wrong"), people.log_in(client, "wrong", email="x@x.example")
        said = [re.sub(r'value="[^"]*"', "", page.content.decode()) for page in (known, unknown)]
        assert said[0] == said[1] and "90 days" not in said[0]

    def test_code_without_a_password_leads_to_the_login(self, client: Client, disabled: User) -> None:
        assert give_code(client) == "/accounts/login/"
        assert "log in with your password now" in client.get("/accounts/login/").content.decode()
        assert not people.is_in(client)

    @pytest.mark.parametrize("is_code_first", [True, False])
    def test_needs_password_and_code(self, client: Client, disabled: User, is_code_first: bool) -> None:
        if is_code_first:
            give_code(client)
            people.log_in(client)
        else:
            people.log_in(client)
            give_code(client)
        assert people.is_in(client)
        disabled.refresh_from_db()
        assert disabled.disabled_for_disuse_at is disabled.disuse_warned_at is None
        assert AuditEntry.objects.filter(action="account_enabled", user=disabled).count() == 1
        tasks.disable_unused_accounts()
        assert people.is_in(client)

    def test_needs_the_code_in_the_same_browser(self, client: Client, disabled: User) -> None:
        give_code(Client())
        assert people.log_in(client)["Location"] == "/accounts/login/code/"

    def test_asks_for_the_second_factor(self, client: Client, disabled: User) -> None:
        secret = people.set_up_app(disabled)
        people.log_in(client)
        assert give_code(client) == "/accounts/2fa/authenticate/"
        disabled.refresh_from_db()
        assert disabled.disabled_for_disuse_at and not people.is_in(client)
        client.post("/accounts/2fa/authenticate/", {"code": people.code(secret)})
        disabled.refresh_from_db()
        assert people.is_in(client) and not disabled.disabled_for_disuse_at

    def test_is_a_new_password_by_a_mailed_link(self, client: Client, disabled: User) -> None:
        client.post("/accounts/password/reset/", {"email": EMAIL})
        link = people.mailed(r"http\S+/key/\S+").removeprefix(service.BASE_URL)
        path = client.get(link, follow=True).redirect_chain[-1][0]
        assert client.post(path, {"password1": NEW, "password2": NEW}).status_code == 302
        assert people.log_in(client, NEW)["Location"] == "/portal"
        assert AuditEntry.objects.filter(action="account_enabled").count() == 1
