"""Limits per address count all IPv6 addresses of a /64 as one. A /48 gets ten times the limit of a /64."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.apps import apps
from django.db import models, transaction
from django.test import Client
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from checkout.models import Checkout
from config.lib import clock, limits
from config.lib.quota import SITE_FACTOR
from hosted_page.group import share_claim_limits
from hosted_page.models import CardTry, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import limits as sms_limits
from hosted_page.sms import outbox
from hosted_page.steps import declines
from payments.models import Merchant
from portal.accounts import login_limits
from tests import factories
from tests.conftest import Api
from tests.factories import CustomerFactory
from tests.portal.oauth.test_token import credentials

pytestmark = [pytest.mark.django_db, pytest.mark.rule("limit.address")]
# In these tests, each limit allows this many attempts.
MAXIMUM = 2
OF_LOGINS = [
    (kind, number)
    for kind, of_kind in login_limits.LIMITS.items()
    for number, limit in enumerate(of_kind)
    if "address_digest" in limit.per
]
Try = Callable[[str], bool]


def lowered(limit: login_limits.Limit) -> login_limits.Limit:
    return limit._replace(quota=limit.quota._replace(maximum=MAXIMUM))


def passes(act: Callable[[], object], refusal: type[Exception]) -> bool:
    try:
        with transaction.atomic():
            act()
    except refusal:
        return False
    return True


class Tries:
    """One method for each limit per address.

    Each method returns a function that makes one attempt from an address, and returns whether the limit allowed it.
    """

    def __init__(self, acme: Merchant, patch: pytest.MonkeyPatch, settings: Settings) -> None:
        self.acme, self.patch, self.settings = acme, patch, settings
        self.number = 0

    def login(self, kind: str, number: int) -> Try:
        limit = lowered(login_limits.LIMITS[kind][number])
        self.patch.setitem(login_limits.LIMITS, kind, (limit,))

        def attempt(at: str) -> bool:
            self.number += 1
            account = "lea" if "account_digest" in limit.per else f"person {self.number}"
            return passes(
                lambda: login_limits.count_attempt(kind, account=account, address=at),
                login_limits.TooManyAttempts,
            )

        return attempt

    def card(self) -> Try:
        self.patch.setattr(declines, "PER_ADDRESS", declines.PER_ADDRESS._replace(maximum=MAXIMUM))

        def attempt(at: str) -> bool:
            target, person = PaymentTarget(factories.checkout(self.acme)), CustomerFactory.create()
            return passes(
                lambda: declines.count_card_try(target, person, f"card {at}", at), declines.TooManyDeclines
            )

        return attempt

    def share(self) -> Try:
        self.patch.setattr(
            share_claim_limits, "PER_ADDRESS", share_claim_limits.PER_ADDRESS._replace(maximum=MAXIMUM)
        )
        return lambda at: passes(lambda: share_claim_limits.count_claim(at), share_claim_limits.TooManyClaims)

    def text(self, *, returning: bool = False) -> Try:
        self.patch.setattr(sms_limits, "PER_ADDRESS", sms_limits.PER_ADDRESS._replace(maximum=MAXIMUM))
        target = PaymentTarget(factories.checkout(self.acme))

        def put(at: str) -> None:
            self.number += 1
            kind = SmsMessage.Kind.RETURN if returning else SmsMessage.Kind.CODE
            phone = f"+4477009{self.number:05}"
            asked = outbox.MessageRequest(kind, phone, target, "words", clock.now(), at)
            if returning:
                outbox.queue_code_for_payer(asked, key=uuid7(), is_payer=True)
            else:
                outbox.queue_message(asked)

        return lambda at: passes(lambda: put(at), sms_limits.TooManySmsMessages)

    def token(self, *, has_redis: bool = True) -> Try:
        self.settings.LIMITS = self.settings.LIMITS | {"token_failures": f"{MAXIMUM}/minute"}
        if not has_redis:
            self.patch.setattr(limits, "_redis_down_until", float("inf"))
        wrong = credentials(Api(self.acme), client_secret="wrong")
        return lambda at: (
            Client(REMOTE_ADDR=at).post("/oauth/token", wrong, "application/json").status_code == 401
        )


TRIES: dict[str, Callable[[Tries], Try]] = {
    "a card": Tries.card,
    "a share by a group's link": Tries.share,
    "a text": Tries.text,
    "a text to a payer who returns": lambda tries: tries.text(returning=True),
    "a token": Tries.token,
    "a token without Redis": lambda tries: tries.token(has_redis=False),
    **{
        f"{kind}, limit {number + 1}": partial(Tries.login, kind=kind, number=number)
        for kind, number in OF_LOGINS
    },
}


@pytest.fixture(params=TRIES)
def attempt(
    request: pytest.FixtureRequest, acme: Merchant, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> Try:
    return TRIES[request.param](Tries(acme, monkeypatch, settings))


def address(network: int, *, site: int = 1, host: int = 1) -> str:
    """Return an IPv6 address. `site` is the number of its /48, and `network` is the number of the /64 within it."""
    return f"2001:db8:{site:x}:{network:x}::{host:x}"


def test_an_ipv6_64_network_counts_as_one_caller(attempt: Try) -> None:
    assert [attempt(address(1, host=host)) for host in range(1, 4)] == [True, True, False]
    assert attempt(address(2))


def test_an_ipv6_48_network_has_ten_times_the_limit(attempt: Try) -> None:
    for network in range(1, SITE_FACTOR * MAXIMUM + 1):
        assert attempt(address(network)), network
    assert not attempt(address(1000)), "a /64 that has not tried yet"
    assert attempt(address(1, site=2))


def test_ipv4_addresses_are_counted_one_by_one(attempt: Try) -> None:
    for last in range(1, SITE_FACTOR * MAXIMUM + 2):
        assert attempt(f"192.0.2.{last}")
    assert [attempt("198.51.100.1") for _ in range(3)] == [True, True, False]


def test_every_row_that_has_an_address_has_its_48_and_an_index_by_it() -> None:
    counted = [
        model for model in apps.get_models() if any(field.name == "address_digest" for field in fields(model))
    ]
    assert {model.__name__ for model in counted} == {"LoginAttempt", "SmsMessage", "CardTry", "ShareTake"}
    for model in counted:
        assert any(field.name == "site_digest" for field in fields(model))
        assert any(
            "site" in index.name and "site_digest" in str(index.condition) for index in model._meta.indexes
        )


def fields(model: type[models.Model]) -> list[Any]:
    return list(model._meta.concrete_fields)


def test_paid_tries_of_a_48_network_stop_counting_at_the_next_try(
    acme: Merchant, pay: Callable[..., Checkout], monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = pay(factories.checkout(acme))
    assert paid.payment is not None
    declines.count_card_try(
        PaymentTarget(paid), CustomerFactory.create(), paid.payment.card_token, address(1)
    )
    declines.count_card_try(
        PaymentTarget(factories.checkout(acme)), CustomerFactory.create(), "another", address(2)
    )
    assert list(CardTry.objects.order_by("created_at").values_list("is_counted", flat=True)) == [False, True]
