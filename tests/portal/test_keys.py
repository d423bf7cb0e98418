from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken

from payments.models import Merchant
from portal import keys
from portal.models import ApiClient, Role
from tests.conftest import Api
from tests.portal import stage
from tests.portal.people import get_token, secret_in

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.ADMIN)


class TestKey:
    def test_has_two_secrets_while_it_is_rotated(self, client: Client, api: Api) -> None:
        known, old = api.key.client, api.key.client_secret
        new = secret_in(client.post(f"/portal/keys/{known.pk}/rotate", follow=True))
        assert [get_token(known.client_id, secret) for secret in (old, new)] == [200, 200]
        again = client.post(f"/portal/keys/{known.pk}/rotate", follow=True).content.decode()
        assert "has two secrets already" in again
        assert [get_token(known.client_id, secret) for secret in (old, new)] == [200, 200]
        assert api.get("checkouts").status_code == 200
        client.post(f"/portal/keys/{known.pk}/stop")
        assert [get_token(known.client_id, secret) for secret in (old, new)] == [401, 200]
        assert api.get("checkouts").status_code == 401, "a token of the old secret ends with it"

    def test_that_is_revoked_ends_at_once_with_its_tokens(self, client: Client, api: Api) -> None:
        assert api.get("checkouts").status_code == 200
        client.post(f"/portal/keys/{api.key.client.pk}/revoke")
        assert api.get("checkouts").status_code == 401 and not AccessToken.objects.exists()
        assert get_token(api.key.client.client_id, api.key.client_secret) == 401
        assert client.post(f"/portal/keys/{api.key.client.pk}/rotate").status_code == 404

    def test_is_limited_in_number(self, client: Client, acme: Merchant) -> None:
        for number in range(50):
            keys.create_client(acme, f"Key {number}")
        page = client.post("/portal/keys/new", {"name": "One more", "scopes": "checkouts:read"})
        assert page.status_code == 422 and ApiClient.objects.count() == 50

    def test_says_when_it_was_last_used_at_most_once_a_minute(self, api: Api) -> None:
        api.get("checkouts")
        first = ApiClient.objects.get().last_used_at
        assert first is not None
        api.get("checkouts")
        assert ApiClient.objects.get().last_used_at == first
        ApiClient.objects.update(last_used_at=timezone.now() - timedelta(seconds=61))
        api.get("checkouts")
        assert (ApiClient.objects.get().last_used_at or first) > first
