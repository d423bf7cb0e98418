"""A token that is requested at the moment at which an owner stops the secret."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from oauth2_provider.models import AccessToken

from portal import keys
from portal.models import Role
from tests.factories import MerchantFactory
from tests.portal import stage
from tests.portal.people import get_token


@pytest.mark.django_db(transaction=True)
@pytest.mark.rule("token.keys")
def test_no_token_is_issued_for_a_secret_that_is_being_stopped() -> None:
    owner = stage.person(MerchantFactory.create(), Role.OWNER)
    client, old_secret = keys.create(owner, "Shop", ["checkouts:read"])
    new_secret = keys.rotate(owner, client.pk).client_secret
    assert get_token(client.client_id, old_secret) == 200  # the first request of a process takes longer

    def request_token(secret: str) -> int:
        try:
            return get_token(client.client_id, secret)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            keys.stop_previous(owner, client.pk)
            answers = [pool.submit(request_token, secret) for secret in (old_secret, new_secret)]
            time.sleep(0.5)  # both requests read the key before the stop is committed
        assert [answer.result() for answer in answers] == [401, 200]
    assert AccessToken.objects.count() == 1
