"""Passkeys in a browser with a virtual authenticator: how people add them, and every way to use them."""

import re
from collections.abc import Callable
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from config.lib.web import origins
from tests.browser.accounts.device import Device
from tests.browser.accounts.owner import Owner
from tests.journeys.service import Service
from tests.portal import people

pytestmark = [pytest.mark.journey, pytest.mark.rule("portal.passkeys")]
LONG_AGO = """
from django.contrib.sessions.models import Session
for row in Session.objects.all():
    kept = row.get_decoded()
    for record in kept.get("account_authentication_methods", []):
        record["at"] -= 600
    Session.objects.filter(pk=row.pk).update(session_data=Session.objects.encode(kept))
"""
MERCHANT_OF = """
from portal.models import User
print(User.objects.get(email="{}").memberships.get().merchant_id)
"""


def give_password(owner: Owner) -> None:
    """Log in with e-mail and password, and stop at the page that asks for the second factor."""
    owner.log_in()
    owner.see("Confirm it’s you")


def add(owner: Owner, name: str) -> None:
    owner.go("/portal/security")
    owner.press("Add a passkey")
    owner.page.fill("#name", name)
    owner.press("Add a passkey")


def test_a_passkey_is_added_used_and_removed(owner: Owner, service: Service) -> None:
    device = Device(owner.page)
    owner.log_in()
    owner.go("/accounts/2fa/passkeys/add/")
    owner.see("Add a passkey")
    add(owner, "Laptop")
    owner.see("Your recovery codes")
    owner.press("I have saved them")
    owner.see("Your security")
    expect(owner.page.get_by_text("Laptop", exact=True)).to_be_visible()
    add(owner, "Laptop again")
    expect(owner.page.get_by_text("This device already has one of your passkeys.")).to_be_visible()

    owner.log_out()
    owner.go("/accounts/login/?next=/portal/keys")
    owner.see("Log in")
    owner.press("Log in with a passkey")
    owner.page.wait_for_url(f"{owner.base_url}/portal/keys")

    owner.log_out()
    give_password(owner)
    owner.press("Use your passkey")
    owner.page.wait_for_url("**/portal")

    service.command("shell", "--command", LONG_AGO)
    owner.go("/portal/security")
    owner.press("Make new ones")
    owner.see("Confirm it’s you")
    owner.press("Use your passkey")
    owner.see("Make new recovery codes?")
    owner.go("/portal/security")
    owner.page.locator("a", has_text="Remove it").first.click()
    owner.see("Remove this passkey?")
    owner.press("Remove it")
    expect(owner.page.get_by_text("Your passkey is removed.")).to_be_visible()

    owner.log_out()
    owner.go("/accounts/login/")
    owner.press("Log in with a passkey")
    expect(owner.page.get_by_text("This passkey did not work.")).to_be_visible()
    device.clear()
    owner.press("Log in with a passkey")
    expect(owner.page.get_by_text("No passkey was used.")).to_be_visible()


def test_no_passkey_is_added_if_the_device_does_not_recognise_its_owner(owner: Owner) -> None:
    device = Device(owner.page)
    device.recognises(False)
    owner.log_in()
    add(owner, "Laptop")
    expect(owner.page.get_by_text("No passkey was used.")).to_be_visible()
    device.recognises(True)
    owner.press("Add a passkey")
    expect(owner.page.locator("h1")).to_have_text("Your recovery codes")


def test_without_javascript_an_authenticator_app_works_and_passkeys_are_explained(
    service: Service, open_page: Callable[..., Page]
) -> None:
    merchant = service.new_merchant()
    page = open_page(java_script_enabled=False)
    there = origins.with_localhost(service.base_url)
    page.goto(f"{there}/accounts/login/")
    expect(page.get_by_text("A passkey needs a browser with JavaScript.")).to_be_visible()
    expect(page.locator("button", has_text="passkey")).to_be_hidden()
    page.fill("#login", merchant.owner[0])
    page.fill("#password", merchant.owner[1])
    page.click("button:has-text('Log in')")
    page.goto(f"{there}/accounts/2fa/totp/activate/")
    page.fill("#code", people.code(page.inner_text("#setup-key")))
    page.click("button:has-text('Set it up')")
    expect(page.locator("h1")).to_have_text("Your recovery codes")


def test_an_operator_acts_with_a_passkey(service: Service, open_page: Callable[..., Page]) -> None:
    email, password = f"olga-{uuid4().hex}@operators.example", "a bill on the table"
    made = f"from portal.models import User; User.objects.create_superuser({email!r}, {password!r})"
    service.command("shell", "--command", made)
    merchant = service.new_merchant(f"Stopped {uuid4().hex[:8]}")
    there = origins.with_localhost(service.base_url)
    olga = Owner(open_page(), there, email, password, ())
    Device(olga.page)
    olga.log_in()
    olga.page.wait_for_url("**/admin/")
    olga.go("/accounts/2fa/passkeys/add/")
    olga.press("Add a passkey")
    # From now on, Olga can confirm her identity only with the passkey.
    olga.press("Use your passkey")
    olga.page.wait_for_url("**/codes/")
    service.command("shell", "--command", LONG_AGO)
    uuid = service.command("shell", "--command", MERCHANT_OF.format(merchant.owner[0])).split()[-1]
    olga.go(f"/admin/payments/merchant/{uuid}/change/")
    olga.page.fill("#id_name", "Renamed by Olga")
    olga.page.click("[name=_save]")
    expect(olga.page.locator("h1")).to_have_text("Confirm it’s you")
    expect(olga.page.get_by_text("Use your password instead")).to_have_count(0)
    olga.press("Use your passkey")
    expect(olga.page.get_by_text(re.compile("Renamed by Olga")).first).to_be_visible()
