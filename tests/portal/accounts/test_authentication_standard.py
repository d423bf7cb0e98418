"""docs/security-asvs.md has a row for each requirement, and its rows name only tests that exist.

This module also tests some of the requirements.
"""

import ast
import math
import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from allauth.mfa import app_settings as mfa
from django.conf import settings as service
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from payments.models import Merchant
from portal import team
from portal.mail import outbox
from portal.models import Membership, PreviousPassword, Role, User
from portal.urls import accounts
from tests.portal import people
from tests.portal.people import EMAIL, PASSWORD

PAGE = (service.BASE_DIR / "docs" / "security-asvs.md").read_text()
ROW = re.compile(r"^\| (\d\.\d\.\d+) \| ([12]) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
# The number of requirements at levels 1 and 2 in each section. In every section, the requirements at level 3 come last.
SECTIONS = {"6.1": 3, "6.2": 12, "6.3": 4, "6.4": 4, "6.5": 5, "6.6": 3, "6.8": 4}
SECTIONS |= {"7.1": 3, "7.2": 4, "7.3": 2, "7.4": 5, "7.5": 2, "7.6": 2}
NEW = "another bill on the table"
FORMS = [
    "/accounts/password/change/",
    "/accounts/2fa/totp/activate/",
    "/accounts/2fa/codes/",
    "/accounts/reauthenticate/",
]


def names_in(path: Path) -> set[str]:
    """Return the names of a module's top-level classes and functions."""
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }


class TestTable:
    def test_has_each_requirement_once_and_in_order(self) -> None:
        wanted = [f"{section}.{number + 1}" for section, count in SECTIONS.items() for number in range(count)]
        assert [row[0] for row in ROW.findall(PAGE)] == wanted

    def test_names_tests_that_exist(self) -> None:
        missing = []
        for number, *_, cell in ROW.findall(PAGE):
            named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", cell)
            path_and_names = [(service.BASE_DIR / path, name) for path, name in named]
            missing += [f"{number}: {path}::{name}" for path, name in path_and_names if not _has(path, name)]
            assert named or cell == "–", number
        assert missing == []

    def test_requirements_without_a_test_do_not_apply(self) -> None:
        assert all("Does not apply" in means for *_, means, cell in ROW.findall(PAGE) if cell == "–")


def _has(path: Path, name: str) -> bool:
    return path.is_file() and name in names_in(path)


@pytest.mark.django_db
class TestPasswordFields:
    PAGES = ("/accounts/login/", "/accounts/password/change/", "/accounts/reauthenticate/")

    def fields(self, page: str) -> list[str]:
        return re.findall(r'<input[^>]*name="(?:\w*password\w*)"[^>]*>', page)

    def test_hide_the_typed_text_and_work_with_password_managers(self, client: Client, lea: User) -> None:
        pages = [Client().get("/accounts/login/").content.decode()]
        client.force_login(lea)
        pages += [client.get(path).content.decode() for path in self.PAGES[1:]]
        found = [field for page in pages for field in self.fields(page)]
        assert len(found) == 5
        for field in found:
            assert 'type="password"' in field
            assert re.search(r'autocomplete="(current|new)-password"', field), field

    def test_allow_pasting(self) -> None:
        scripts = [path.read_text() for path in (service.BASE_DIR / "static").rglob("*.js")]
        assert scripts and not any(re.search(r"\bonpaste\b|[\"']paste[\"']", script) for script in scripts)

    @pytest.mark.parametrize("typed", [f" {NEW}", f"{NEW} ", NEW.upper(), NEW[:-1]])
    def test_accept_a_password_exactly_as_it_is_typed(
        self, client: Client, acme: Merchant, typed: str
    ) -> None:
        Membership.objects.create(merchant=acme, user=User.objects.create_user(EMAIL, NEW), role=Role.OWNER)
        assert people.log_in(client, typed).status_code == 200
        assert people.log_in(client, NEW).status_code == 302

    def test_accept_a_password_with_spaces_at_both_ends(self, client: Client, lea: User) -> None:
        people.log_in(client)
        spaced = f"  {NEW}  "
        client.post(
            "/accounts/password/change/", {"oldpassword": PASSWORD, "password1": spaced, "password2": spaced}
        )
        assert User.objects.get().check_password(spaced)

    def test_accept_a_password_of_any_age(self, client: Client, lea: User) -> None:
        PreviousPassword.objects.update(created_at=timezone.now() - timedelta(days=2000))
        assert people.log_in(client)["Location"] == "/portal" and people.is_in(client)

    def test_ask_no_personal_question_at_a_reset(self, client: Client) -> None:
        page = client.get("/accounts/password/reset/").content.decode()
        assert set(re.findall(r'<input[^>]*name="(\w+)"', page)) == {"csrfmiddlewaretoken", "email"}


@pytest.mark.django_db
class TestWaysToLogIn:
    def test_are_one_backend_and_the_documented_forms(self) -> None:
        assert service.AUTHENTICATION_BACKENDS == ["allauth.account.auth_backends.AuthenticationBackend"]
        calls = re.compile(r"(?<![\w.])login\(request")
        code = [
            path
            for folder in ("portal", "config", "hosted_page")
            for path in (service.BASE_DIR / folder).rglob("*.py")
        ]
        assert [path.name for path in code if calls.search(path.read_text())] == ["invitations.py"]

    def test_have_no_identity_provider_and_no_sms(self) -> None:
        assert not [app for app in service.INSTALLED_APPS if "socialaccount" in app or "openid" in app]
        asked_for = [*service.ACCOUNT_LOGIN_METHODS, *service.ACCOUNT_SIGNUP_FIELDS]
        assert asked_for and not any("phone" in field for field in asked_for)

    def test_do_not_exist_in_a_new_database_without_accounts(self) -> None:
        assert not User.objects.exists()

    def test_do_not_include_opening_a_page(self, client: Client, acme: Merchant, lea: User) -> None:
        member = Membership.objects.select_related("merchant", "user").get()
        team.invite(member, "dora@mail.example", Role.VIEWER)
        outbox.send_due()
        joining = people.mailed(r"/join/\S+")
        client.post("/accounts/password/reset/", {"email": EMAIL})
        reset = people.mailed(r"/accounts/password/reset/key/\S+")
        paths = [
            f"/accounts/{pattern.pattern}" for pattern in accounts if "uidb36" not in str(pattern.pattern)
        ]
        for path in (*paths, joining, reset):
            client.get(path, follow=True)
            assert "_auth_user_id" not in client.session, path

    def test_by_a_new_password_still_ask_for_the_second_factor(self, client: Client, lea: User) -> None:
        people.set_up_app(lea)
        client.post("/accounts/password/reset/", {"email": EMAIL})
        link = people.mailed(r"/accounts/password/reset/key/\S+")
        path = client.get(link, follow=True).redirect_chain[-1][0]
        assert client.post(path, {"password1": NEW, "password2": NEW}).status_code == 302
        assert not people.is_in(client)
        assert people.log_in(client, NEW)["Location"] == "/accounts/2fa/authenticate/"


@pytest.mark.django_db
class TestCodes:
    def test_have_eight_random_digits(self, lea: User) -> None:
        people.set_up_app(lea)
        codes = people.recovery_codes(lea)
        for _ in range(3):
            Client().post("/accounts/login/code/", {"email": EMAIL})
            codes.append(people.mailed(r"\b\d{8}\b"))
        assert len(set(codes)) == len(codes) == 13
        assert all(len(code) == 8 and code.isdigit() for code in codes) and math.log2(10**8) > 20

    def test_by_mail_live_ten_minutes_and_those_of_an_app_half_a_minute(self) -> None:
        assert service.ACCOUNT_LOGIN_BY_CODE_TIMEOUT == 600
        assert mfa.TOTP_PERIOD == 30 and service.MFA_TOTP_TOLERANCE == 1


@pytest.mark.django_db
class TestSessionKeys:
    def test_are_random_and_never_the_same(self, lea: User) -> None:
        keys = []
        for _ in range(3):
            browser = Client()
            people.log_in(browser)
            keys.append(browser.cookies["sessionid"].value)
        assert len(set(keys)) == 3 and Session.objects.count() >= 3
        assert all(re.fullmatch(r"[\w-]{32,}", key) for key in keys) and 32 * math.log2(36) > 128
        assert all(sum(a != b for a, b in zip(*pair, strict=True)) > 16 for pair in pairwise(keys))


@pytest.mark.django_db
class TestLogOut:
    def test_is_on_every_page_of_a_logged_in_person(self, client: Client, lea: User) -> None:
        people.set_up_app(lea)
        people.log_in(Client())
        client.force_login(lea)
        people.prove(client, lea, "mfa")
        portal = ["/portal", "/portal/checkouts", "/portal/team", "/portal/security", "/portal/audit"]
        for path in (*portal, *FORMS):
            page = client.get(path, follow=True)
            assert page.status_code == 200 and 'action="/accounts/logout/"' in page.content.decode(), path

    def test_is_on_every_page_of_an_operator(self, client: Client) -> None:
        people.operate(client)
        for path in ("/admin/", "/admin/portal/user/", "/admin/operations/", "/accounts/2fa/"):
            page = client.get(path, follow=True).content.decode()
            assert re.search(r'action="/(accounts|admin)/logout/"', page), path
