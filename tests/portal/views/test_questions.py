"""The portal asks for confirmation before it removes a key, a person or the endpoint.

The question is shown within the page or on a separate page.
"""

import pytest
from django.test import Client

from payments.models import Merchant
from portal.models import ApiClient, Membership, Role
from tests.portal.stage import Stage, browser, captured
from webhooks.models import SigningSecret, Subscription

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme_stage(acme: Merchant) -> Stage:
    return Stage(acme)


@pytest.fixture
def client(acme_stage: Stage) -> Client:
    return browser(acme_stage.people[Role.OWNER])


class TestQuestion:
    def test_is_shown_in_place_or_as_a_page_and_changes_nothing(
        self, acme_stage: Stage, client: Client
    ) -> None:
        for address, title in (
            (f"/portal/keys/{acme_stage.client.pk}/revoke", "Revoke “Shop backend”?"),
            (f"/portal/team/{acme_stage.target.pk}/remove", f"Remove {acme_stage.target.user.email}?"),
            ("/portal/webhooks/end", "Remove the endpoint?"),
            (f"/portal/keys/{acme_stage.client.pk}/rotate", "Rotate “Shop backend”?"),
            (f"/portal/keys/{acme_stage.client.pk}/stop", "Stop the old secret of “Shop backend”?"),
            ("/portal/webhooks/rotate", "Rotate the signing secret?"),
            ("/portal/webhooks/revoke", "Stop every old secret now?"),
        ):
            page = client.get(address).content.decode()
            assert title in page and "<h1>" in page, address
            part = client.get(address, headers={"HX-Request": "true", "HX-Target": "question-1"})
            words = part.content.decode()
            assert title in words and "<h1>" not in words and f'action="{address}"' in words
        assert ApiClient.objects.filter(pk=acme_stage.client.pk, revoked_at=None, previous_secret="").exists()
        assert SigningSecret.objects.filter(subscription__merchant=acme_stage.merchant).count() == 1
        assert Membership.objects.filter(pk=acme_stage.target.pk).exists()
        assert Subscription.objects.filter(merchant=acme_stage.merchant, ended_at=None).exists()

    def test_carries_out_the_action_when_it_is_confirmed(self, acme_stage: Stage, client: Client) -> None:
        client.post(f"/portal/keys/{acme_stage.client.pk}/revoke")
        client.post(f"/portal/team/{acme_stage.target.pk}/remove")
        assert not ApiClient.objects.filter(pk=acme_stage.client.pk, revoked_at=None).exists()
        assert not Membership.objects.filter(pk=acme_stage.target.pk).exists()
        assert client.get(f"/portal/keys/{acme_stage.client.pk}/revoke").status_code == 404

    def test_is_what_the_buttons_of_the_pages_lead_to(self, acme_stage: Stage, client: Client) -> None:
        for page, address in (
            ("/portal/webhooks", "/portal/webhooks/rotate"),
            ("/portal/keys", f"/portal/keys/{acme_stage.client.pk}/rotate"),
        ):
            shown = client.get(page).content.decode()
            assert f'href="{address}"' in shown and f'action="{address}"' not in shown


def test_actions_without_the_right_have_no_form(acme_stage: Stage) -> None:
    client = browser(acme_stage.people[Role.VIEWER])
    for address, known in (
        ("/portal/settings", acme_stage.merchant.name),
        ("/portal/webhooks", "127.0.0.1:9/<wbr>hooks"),
        ("/portal/keys", acme_stage.client.client_id),
        ("/portal/team", acme_stage.invitation.email),
    ):
        main = client.get(address).content.decode().split("<main")[1]
        assert known in main
        for control in ("<form", "<input", "<select", "<fieldset", "data-asks"):
            assert control not in main, (address, control)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.DEVELOPER])
def test_a_refund_is_offered_only_to_roles_with_the_right(acme_stage: Stage, role: Role) -> None:
    order = captured(acme_stage.merchant)
    for who, is_offered in ((Role.OWNER, True), (role, False)):
        main = (
            browser(acme_stage.people[who])
            .get(f"/portal/checkouts/{order.pk}")
            .content.decode()
            .split("<main")[1]
        )
        assert (f"/portal/checkouts/{order.pk}/refund" in main) == is_offered, who
