"""The pages on which people manage the security of their account, in a browser, at every size, light and dark."""

import pytest
from playwright.sync_api import expect

from tests.browser.accounts.owner import Owner
from tests.journeys.service import Service
from tests.portal import people

pytestmark = pytest.mark.journey
NEW = "another bill on the table"


def set_up_app(owner: Owner) -> str:
    """Log in, and set up an authenticator app after entering one wrong code. Return the app's secret."""
    owner.log_in()
    owner.go("/portal/security")
    owner.press("Set up an app")
    owner.page.fill("#code", "000000")
    owner.press("Set it up")
    owner.see("Set up your authenticator app")
    secret = owner.page.inner_text("#setup-key")
    owner.page.fill("#code", people.code(secret))
    owner.press("Set it up")
    return secret


@pytest.mark.long
def test_an_authenticator_app_is_set_up_used_at_login_and_removed(owner: Owner) -> None:
    owner.go("/accounts/login/")
    owner.see("Log in")
    owner.page.fill("#login", owner.email)
    owner.page.fill("#password", "wrong")
    owner.press("Log in")
    owner.see("Log in")
    secret = set_up_app(owner)
    owner.see("Your recovery codes")
    assert owner.page.locator(".recovery-codes li").count() == 10
    owner.press("I have saved them")
    owner.see("Your security")
    owner.log_out()
    owner.log_in()
    owner.page.fill("#code", "000000")
    owner.press("Log in")
    owner.see("Confirm it’s you")
    owner.page.fill("#code", people.code(secret, later=1))
    owner.press("Log in")
    owner.page.wait_for_url("**/portal")
    owner.go("/portal/security")
    owner.see("Your security")
    expect(owner.page.locator(".sessions li")).to_have_count(2)
    owner.press("End all others")
    expect(owner.page.locator(".sessions li")).to_have_count(1)
    owner.press("Make new ones")
    owner.see("Make new recovery codes?")
    owner.go("/portal/security")
    owner.press("Remove it")
    owner.see("Remove your authenticator app?")
    owner.press("Remove it")
    expect(owner.page.get_by_text("Your authenticator app is removed.")).to_be_visible()
    owner.go("/accounts/reauthenticate/?next=/portal")
    owner.see("Confirm it’s you")


@pytest.mark.long
def test_a_password_is_changed_and_reset_by_mail(owner: Owner) -> None:
    owner.log_in()
    owner.go("/accounts/password/change/")
    owner.page.fill("#oldpassword", owner.password)
    owner.page.fill("#password1", "short")
    owner.page.fill("#password2", "short")
    owner.press("Change it")
    owner.see("Change your password")
    owner.log_out()
    owner.go("/accounts/login/")
    owner.press("Forgot it?")
    owner.see("Reset your password")
    owner.page.fill("#email", owner.email)
    owner.press("Mail me the link")
    owner.see("Check your mail")
    owner.go("/mail")
    owner.see("Mails on this machine")
    owner.open_mail("Choose a new password")
    owner.see("TEST · Choose a new password")
    link = owner.page.locator(".mail-text a[href*='/key/']").get_attribute("href") or ""
    owner.page.click(f".mail-text a[href='{link}']")
    owner.see("Choose a new password")
    owner.page.fill("#password1", NEW)
    owner.page.fill("#password2", NEW)
    owner.press("Save the new password")
    owner.see("Your password has changed")
    owner.page.goto(link)
    owner.see("This link no longer works")


@pytest.mark.long
def test_an_emailed_code_logs_in_after_fifty_wrong_passwords(owner: Owner, service: Service) -> None:
    service.command("shell", "--command", FIFTY.format(email=owner.email))
    owner.log_in()
    owner.see("Log in")
    owner.press("Log in with a code by e-mail")
    owner.see("Enter the code")
    owner.open_mail("Your code to log in")
    code = owner.page.locator(".mail-text").inner_text().split()[5]
    owner.go("/accounts/login/")
    expect(owner.page.locator("h1")).to_have_text("Enter the code")
    owner.page.fill("#code", code)
    owner.press("Log in")
    owner.page.wait_for_url("**/portal")
    owner.log_out()
    owner.go("/accounts/login/code/")
    owner.see("Log in with a code by e-mail")
    owner.go("/accounts/inactive/")
    owner.see("This account is closed")


FIFTY = """
from portal.accounts import login_limits
for number in range(50):
    login_limits.count_attempt("password", account="{email}", address=f"10.0.1.{{number}}")
"""
