"""The list of e-mails, and the top of an e-mail's page."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from checkout.models import Refund
from config.lib import clock
from payments.models import Merchant
from portal.mail import mail_kinds, outbox
from portal.models import OutboundEmail
from tests.portal.backoffice.record_heads.tops import address_of, main_button, page_of, text_of
from tests.portal.backoffice.test_records import cells

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]
LIST = "portal/outboundemail"


@pytest.fixture
def email(failed: Refund) -> OutboundEmail:
    """Return the e-mail about a failed refund, which waits to be sent."""
    facts = {"order": failed.checkout.merchant_order_id, "checkout": str(failed.checkout_id)}
    outbox.queue_once(failed.merchant, "refund_failed", key=str(failed.pk), **facts)
    return OutboundEmail.objects.get(kind="refund_failed")


def login_kinds() -> Iterator[str]:
    for app in ("account", "mfa"):
        folder = Path(settings.BASE_DIR) / "templates" / app / "email"
        yield from (
            f"{app}/email/{path.name.removesuffix('_subject.txt')}" for path in folder.glob("*_subject.txt")
        )


def test_each_kind_has_words() -> None:
    assert {*outbox.SUBJECTS, *login_kinds()} <= set(mail_kinds.WORDS)


class TestTheList:
    def test_names_the_subject_the_state_and_the_merchant(
        self, operator: Client, email: OutboundEmail
    ) -> None:
        order = email.facts["order"]
        told = cells(operator, LIST)
        assert told[0].startswith(f"Failed refund, {order}") and (told[1], told[3]) == (
            "Waiting",
            "Acme Tickets",
        )
        page = operator.get(f"/admin/{LIST}/").content.decode()
        assert "<h1>Emails</h1>" in page and "1 email</span>" in page and "refund_failed" not in page

    @pytest.mark.parametrize(
        ("fields", "state"),
        [({"sent_at": True}, "Sent"), ({"dropped_at": True}, "Dropped"), ({}, "Not needed")],
    )
    def test_shows_how_an_email_ended(
        self, operator: Client, email: OutboundEmail, fields: dict[str, bool], state: str
    ) -> None:
        OutboundEmail.objects.update(next_try_at=None, **dict.fromkeys(fields, clock.now()))
        assert cells(operator, LIST)[1] == state

    def test_is_in_the_menu(self, operator: Client) -> None:
        menu = operator.get("/admin/").content.decode().partition('id="main"')[0]
        assert f'href="/admin/{LIST}/"' in menu


class TestTheTop:
    def test_links_to_the_refund_and_the_order(
        self, operator: Client, failed: Refund, email: OutboundEmail
    ) -> None:
        told, page = text_of(operator, email), page_of(operator, email)
        assert told.startswith("Email: Failed refund Waiting")
        assert "to the owners of Acme Tickets: “Failed refund”, order" in told
        assert f'href="{address_of(failed)}"' in page and f'href="{address_of(failed.checkout)}"' in page

    def test_says_what_to_do_if_it_was_dropped(self, operator: Client, email: OutboundEmail) -> None:
        OutboundEmail.objects.update(next_try_at=None, dropped_at=clock.now())
        assert "Check the mail server." in text_of(operator, email)
        assert main_button(operator, email) == "" and "Open the refund" in page_of(operator, email)

    def test_has_no_link_to_a_row_that_is_deleted(
        self, operator: Client, acme: Merchant, email: OutboundEmail
    ) -> None:
        OutboundEmail.objects.update(key="00000000-0000-7000-8000-000000000000", facts={})
        page = page_of(operator, email)
        assert "Open the refund" not in page and f'href="{address_of(acme)}"' in page
