"""After a sign-in has ended, its cookie is useless in every browser, even if it was copied."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import signing
from django.db.models import F
from django.test import Client

from checkout.models import Checkout, Customer
from hosted_page import payer, tasks
from hosted_page.models import PayerSignIn, SmsMessage
from hosted_page.privacy import data_export, data_subjects, erasure
from payments.providers.sandbox import fault_injection
from tests import mates
from tests.hosted_page.browsers import FINN, Mate, Payer, shown_code, words
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.test_remembered_browsers import STILL, elsewhere, remembered

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sign_in.session")]


def copied(browser: Payer) -> Payer:
    """Return another browser that has a copy of all cookies of `browser`."""
    copy = Payer(browser.checkout)
    copy.client = copied_client(browser.client)
    return copy


def copied_client(client: Client) -> Client:
    copy = Client()
    for name, morsel in client.cookies.items():
        copy.cookies[name] = morsel.value
    return copy


def code_for(browser: Payer) -> str:
    """Return the code that was sent to a person who is still signed in.

    The code is read from the cookie, because this person's page shows a later step, without the code.
    """
    shown: str = signing.loads(browser.client.cookies["payer_code"].value, salt="shown-code")
    return shown


def is_in(browser: Payer) -> bool:
    """Return whether someone is signed in in this browser. The order must not be paid yet."""
    return bool(browser.get("/split").status_code == 200)


def grow_older(**by: int) -> None:
    PayerSignIn.objects.update(began_at=F("began_at") - timedelta(**by))


def delete_texts() -> None:
    """Delete the texts, so that the numbers can get another code."""
    SmsMessage.objects.all().delete()


@pytest.fixture
def signed_in(lea: Payer) -> Payer:
    lea.sign_in()
    return lea


class TestACopyOfTheCookie:
    def test_is_useless_once_the_payer_has_signed_out(self, signed_in: Payer) -> None:
        copy = copied(signed_in)
        assert is_in(copy)
        assert signed_in.post("/leave")["Location"] == f"/pay?id={signed_in.checkout.pk}"
        assert not is_in(signed_in) and not is_in(copy)
        assert copy.post("/stay").status_code == 403
        assert "Your mobile number" in words(copy.get())
        assert not PayerSignIn.objects.exists()

    def test_does_not_reveal_that_someone_was_signed_in(self, signed_in: Payer) -> None:
        copy = copied(signed_in)
        signed_in.post("/leave")
        assert "You are signed out" not in words(copy.get()) + words(signed_in.get())

    def test_that_was_extended_is_ended_by_signing_out_with_the_older_cookie(
        self, signed_in: Payer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        copy = copied(signed_in)
        copy.post("/stay")
        with monkeypatch.context() as patched:
            patched.setattr(payer, "LIFE", -1)
            assert not is_in(signed_in), "it was idle for too long"
            signed_in.post("/leave")
        assert not is_in(copy)

    def test_is_useless_after_a_sign_in_by_another_person(self, signed_in: Payer) -> None:
        copy = copied(signed_in)
        signed_in.post("/phone", phone=FINN)
        assert not is_in(copy), "who asks for the code of another number gives up the sign-in"
        signed_in.post("/code", code=code_for(signed_in))
        assert not is_in(copy) and is_in(signed_in)
        assert PayerSignIn.objects.get().customer_uuid == Customer.objects.get(phone="+447700900456").pk

    def test_is_useless_at_a_share_and_at_a_groups_link(self, finn: Mate, order: Checkout) -> None:
        finn.sign_in()
        copy = copied_client(finn.client)
        assert copy.get(finn.path)["Location"] == f"{finn.path}/card"
        assert finn.post("/leave").status_code == 303
        assert copy.get(finn.path).status_code == 200
        guest = Guest(order)
        guest.take(3)
        guest.post("/3/phone", phone="07700 900457")
        guest.post("/3/code", code=shown_code(guest.get("/3")))
        taken = copied_client(guest.client)
        assert taken.get(f"{guest.path}/3")["Location"] == f"{guest.path}/3/card"
        guest.post("/3/leave")
        assert "mobile number" in words(taken.get(f"{guest.path}/3"))

    def test_cannot_read_the_bill_or_act_for_the_lead(self, lead: Payer, order: Checkout) -> None:
        copy = copied(lead)
        assert "You’re covering" in words(copy.get())
        lead.post("/leave")
        assert "You’re covering" not in words(copy.get()) and "Did you pay this?" in words(copy.get())
        for step in ("/receipt", "/remind", "/text-share", "/cancel-share"):
            assert copy.post(step).status_code == 403


class TestNotYou:
    def test_is_offered_on_each_step_and_asks_for_another_number(self, signed_in: Payer) -> None:
        address = f"/pay/leave?id={signed_in.checkout.pk}"
        split = words(signed_in.get("/split"))
        assert f'action="{address}"' in split and "Not you?" in split
        signed_in.post("/split", split="all")
        card = words(signed_in.client.get(signed_in.get("/card")["Location"]))
        assert f'action="{address}"' in card and "Not you?" in card
        answer = signed_in.post("/leave", other="1")
        assert answer["Location"] == f"/pay?id={signed_in.checkout.pk}&change=1"
        page = words(signed_in.client.get(answer["Location"]))
        assert "Your mobile number" in page and "Not you?" not in page

    def test_ends_the_sign_in_of_a_browser_that_is_remembered(self, lea: Payer) -> None:
        remembered(lea)
        copy = copied(lea)
        assert lea.post("/leave", other="1").status_code == 303
        assert not is_in(copy) and STILL in words(lea.get())

    def test_is_called_leave_on_paid_pages(self, lead: Payer, finn: Mate) -> None:
        assert "Sign out</button>" in words(lead.get()) and "Sign out</button>" not in words(
            Payer(lead.checkout).get()
        )
        finn.pay()
        mates.settled(finn.share)
        page = words(finn.get())
        assert "Sign out</button>" in page and f'action="{finn.path}/leave"' in page

    def test_of_a_bill_is_said_once_on_the_next_page(self, lead: Payer, finn: Mate) -> None:
        finn.pay()
        mates.settled(finn.share)
        for browser in (lead, finn):
            page = words(browser.client.get(browser.post("/leave")["Location"]))
            assert '<p class="notice-title">You are signed out</p>' in page
            assert page.index("You are signed out</p>") < page.index("<h1>")
            assert "You are signed out</p>" not in words(browser.get())

    def test_is_called_sign_out_on_a_page_that_becomes_the_receipt(self, finn: Mate) -> None:
        finn.sign_in()
        fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=1)
        fault_injection.set_fault(verb="look_up", mode="down", times=9)
        finn.give_card()
        page = words(finn.get())
        assert "Checking with your bank" in page and "Sign out</button>" in page and "Not you?" not in page

    @pytest.mark.rule("pay.lead")
    def test_ends_the_sign_in_of_a_replaced_lead(self, signed_in: Payer) -> None:
        delete_texts()
        other = Payer(signed_in.checkout)
        other.sign_in(FINN)
        page = words(signed_in.get())
        assert "Sign in and take over" in page and "Not you?" not in page
        copy = copied(signed_in)
        signed_in.post("/leave")
        assert "Your mobile number" in words(copy.get()) and is_in(other)


@pytest.mark.rule("known.ends")
class TestEndingARememberedBrowser:
    def test_ends_only_the_sign_ins_without_a_code(self, lea: Payer) -> None:
        remembered(lea)
        given, asked = elsewhere(lea), elsewhere(lea)
        given.post("/known")
        copy = copied(given)
        assert is_in(copy)
        asked.post("/known/end")
        assert not is_in(given) and not is_in(copy)
        assert is_in(lea), "by a code"

    def test_ends_the_sign_in_of_its_own_page(self, lea: Payer) -> None:
        remembered(lea)
        copy = copied(lea)
        lea.post("/known/end")
        assert not is_in(lea) and not is_in(copy)

    def test_of_a_browser_without_a_sign_in_ends_nothing(self, signed_in: Payer) -> None:
        Payer(signed_in.checkout).post("/known/end")
        assert is_in(signed_in)

    def test_a_remembered_person_has_few_sign_ins(self, lea: Payer) -> None:
        remembered(lea)
        there = elsewhere(lea)
        there.post("/known")
        first = copied(there)
        for _ in range(5):
            assert is_in(first)
            del there.client.cookies[f"payer_{there.checkout.pk.hex}"]
            there.post("/known")
        assert not is_in(first) and is_in(there)
        assert PayerSignIn.objects.filter(subject=there.checkout.pk).count() == 5


def seconds_left(page: str) -> int:
    """Return the number of seconds until the page signs its payer out."""
    return int(page.partition('data-stay="')[2].partition('"')[0])


class TestTwoHours:
    def test_end_a_sign_in_that_is_extended_all_the_time(self, signed_in: Payer) -> None:
        grow_older(minutes=119)
        assert signed_in.post("/stay").status_code == 200 and is_in(signed_in)
        grow_older(minutes=2)
        assert signed_in.post("/stay").status_code == 403 and not is_in(signed_in)
        page = words(signed_in.get())
        assert (
            "You are signed out" in page
            and "This happens after 2 hours." in page
            and "15 minutes" not in page
        )

    @pytest.mark.rule("sign_in.said")
    def test_are_shown_if_they_end_within_fifteen_minutes(self, signed_in: Payer) -> None:
        grow_older(minutes=110)
        page = words(signed_in.get("/split"))
        assert 590 <= seconds_left(page) <= 600 and "data-extend hidden" in page
        said = signed_in.post("/stay").json()
        assert 590 <= said["lasts"] <= 600 and said["is_last"]
        signed_in.post("/split", split="all")
        card = words(signed_in.client.get(signed_in.get("/card")["Location"]))
        assert "data-extend hidden" in card

    @pytest.mark.rule("sign_in.said")
    def test_are_not_mentioned_while_they_are_far_away(self, signed_in: Payer) -> None:
        grow_older(minutes=60)
        page = words(signed_in.get("/split"))
        assert seconds_left(page) == 900 and "data-extend>" in page
        assert signed_in.post("/stay").json()["is_last"] is False

    @pytest.mark.rule("sign_in.said")
    def test_are_shown_on_paid_pages(self, lead: Payer, order: Checkout) -> None:
        grow_older(minutes=118)
        page = words(lead.get())
        assert 110 <= seconds_left(page) <= 120 and ">Stay signed in</a>" not in page
        grow_older(minutes=3)
        page = words(lead.get())
        assert "This happens after 2 hours." in page and "You’re covering" not in page


class TestASignIn:
    def test_in_another_browser_is_not_ended_by_signing_out(self, signed_in: Payer) -> None:
        delete_texts()
        other = Payer(signed_in.checkout)
        other.sign_in()
        signed_in.post("/leave")
        assert is_in(other) and not is_in(signed_in)

    def test_is_invalid_without_its_row(self, signed_in: Payer) -> None:
        """If the row of a sign-in is missing, its cookie signs no one in. A restore of the database can cause this."""
        PayerSignIn.objects.all().delete()
        assert not is_in(signed_in)

    @pytest.mark.rule("privacy.erase", "privacy.export")
    @pytest.mark.parametrize("is_late", [False, True])
    def test_ends_with_the_erasure_of_its_person(self, signed_in: Payer, *, is_late: bool) -> None:
        """When a person is erased, their sign-ins become invalid, even one whose row was written during the erasure."""
        person = data_subjects.find_person(phone="+447700900123")
        assert len(data_export.export_data(person)["signed_in_since"]) == 1
        Checkout.objects.update(lead=None)
        row = PayerSignIn.objects.get()
        erasure.erase(person)
        assert not PayerSignIn.objects.exists()
        if is_late:
            row.save(force_insert=True)
        assert "Your mobile number" in words(signed_in.get())
        assert not is_in(signed_in)

    def test_is_deleted_some_hours_after_its_end(
        self, signed_in: Payer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tasks.delete_old_sign_ins()
        assert is_in(signed_in)
        monkeypatch.setattr(payer, "RETENTION", timedelta(seconds=-1))
        tasks.delete_old_sign_ins()
        assert not PayerSignIn.objects.exists()
        monkeypatch.undo()
        assert payer.RETENTION.total_seconds() > payer.LONGEST + payer.NOTICE_SECONDS


class TestStatements:
    def test_of_a_page_are_one_more_for_a_signed_in_payer(
        self, signed_in: Payer, django_assert_num_queries: Any
    ) -> None:
        signed_in.get("/split")
        with django_assert_num_queries(2):
            signed_in.get("/split")

    def test_of_a_stranger_are_not_more(self, signed_in: Payer, django_assert_num_queries: Any) -> None:
        stranger = Payer(signed_in.checkout)
        stranger.client.cookies[f"payer_{signed_in.checkout.pk.hex}"] = "x:y:z"
        stranger.get()
        with django_assert_num_queries(1):
            stranger.get("/split")
