"""The group page: which shares are free, and how a mate takes and pays a share."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from checkout import mate_shares
from checkout.models import Checkout, GroupLink, PaymentRequest
from config.lib import clock
from config.lib.web import qr_codes
from hosted_page import tasks
from hosted_page.group import share_claim_limits
from hosted_page.models import ShareTake
from hosted_page.payment_target import PaymentTarget, absolute
from payments import operator_stops
from tests import mates
from tests.hosted_page.browsers import FINN, Payer, shown_code, words
from tests.hosted_page.status.reading import plain

pytestmark = pytest.mark.django_db


class Guest:
    """The browser of a person who has the group link."""

    def __init__(self, checkout: Checkout) -> None:
        self.client = Client()
        self.path = f"/pay/g/{GroupLink.objects.get(checkout=checkout).token}"

    def get(self, step: str = "") -> Any:
        return self.client.get(self.path + step)

    def post(self, step: str, **fields: str) -> Any:
        return self.client.post(self.path + step, fields)

    def take(self, position: int, name: str = "") -> Any:
        return self.post("/take", share=str(position), name=name)

    def sign_in(self, position: int, phone: str = FINN) -> Any:
        self.post(f"/{position}/phone", phone=phone)
        return self.post(f"/{position}/code", code=shown_code(self.get(f"/{position}")))

    def pay(self, position: int, number: str = mates.FINNS) -> Any:
        self.sign_in(position)
        card = {"number": number, "expiry": "08 / 49", "code": "123", "name": "Finn"}
        back = self.client.post(self.get(f"/{position}/card")["Location"], card)
        return self.client.get(back["Location"])


@pytest.fixture
def zoe(order: Checkout) -> Guest:
    return Guest(order)


@pytest.fixture
def ade(order: Checkout) -> Guest:
    return Guest(order)


@pytest.fixture
def nameless(order: Checkout) -> int:
    """Remove the name from share 3, and return its position."""
    PaymentRequest.objects.filter(position=3).update(name="")
    return 3


def share(position: int) -> PaymentRequest:
    return PaymentRequest.objects.get(position=position)


def pass_time() -> None:
    PaymentRequest.objects.update(claimed_until=clock.now())


class TestPage:
    @pytest.mark.rule("group.privacy")
    def test_shows_free_shares_and_no_private_data(self, zoe: Guest, order: Checkout) -> None:
        page = words(zoe.get())
        for shown in (
            "Which share is yours?",
            "Lea",
            "Finn",
            "£20.00",
            "Amy",
            "£30.00",
            "£90.00",
            "Open until",
        ):
            assert shown in page
        for hidden in ("900123", "4242", share(2).token, share(3).token):
            assert hidden not in page

    @pytest.mark.rule("group.privacy")
    def test_hides_declined_shares(self, zoe: Guest, order: Checkout) -> None:
        mate_shares.decline(share(2).pk)
        page = words(zoe.get())
        assert "Finn" not in page and "Amy" in page

    @pytest.mark.rule("group.privacy")
    def test_shows_who_has_paid_and_who_has_taken(self, zoe: Guest, ade: Guest, order: Checkout) -> None:
        mates.pay(share(2))
        assert mates.settled(share(2)) == "reimbursed"
        ade.take(3)
        page = words(zoe.get())
        assert "Paid" in page and "Taken" in page and "All shares are taken" in page

    @pytest.mark.rule("group.link")
    @pytest.mark.parametrize("step", ["", "/qr", "/qr.svg", "/2", "/2/card"])
    def test_of_an_unknown_link_is_a_404(self, order: Checkout, step: str) -> None:
        assert Client().get(f"/pay/g/{'x' * 22}{step}").status_code == 404

    def test_of_a_share_that_is_not_there_is_404(self, zoe: Guest) -> None:
        assert zoe.get("/4").status_code == 404
        assert zoe.take(4).status_code == zoe.post("/take").status_code == 409

    @pytest.mark.parametrize(
        ("language", "shown"),
        [
            ("en-gb", "£30.00 <small>each</small></p>"),
            ("de", '<p class="band-amount amount"><small>je</small> 30,00'),
            ("nl", "30,00 <small>per persoon</small></p>"),
        ],
    )
    def test_states_equal_amounts_in_each_languages_word_order(
        self, zoe: Guest, language: str, shown: str
    ) -> None:
        PaymentRequest.objects.update(amount=3000)
        assert shown in words(zoe.client.get(zoe.path, headers={"accept-language": language}))

    def test_is_a_secret_address(self, zoe: Guest) -> None:
        answer = zoe.get()
        assert answer["Referrer-Policy"] == "no-referrer" and "no-store" in answer["Cache-Control"]

    @pytest.mark.rule("group.opens")
    def test_opens_with_the_capture_and_ends_with_the_order(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        assert "Not open yet" in words(guest.get())
        assert guest.take(2).status_code == 409
        assert share(2).claim_digest == ""

    @pytest.mark.rule("group.opens")
    def test_pauses_during_a_refund_of_the_order(self, zoe: Guest, order: Checkout) -> None:
        mates.give_back(order)
        assert "Nothing to pay now" in words(zoe.get()) and zoe.take(2).status_code == 409
        mates.pump(order.pk, rounds=5)
        assert "This order was refunded" in words(zoe.get())

    @pytest.mark.rule("group.opens")
    def test_ends_with_the_links(self, zoe: Guest) -> None:
        PaymentRequest.objects.update(expires_at=clock.now())
        page = words(zoe.get())
        assert "<h1>This link has expired</h1>" in page and "no longer asking" not in page
        assert share(2).status == "expired"

    @pytest.mark.rule("group.preview")
    def test_has_a_link_preview_without_changing_facts(self, zoe: Guest, ade: Guest, order: Checkout) -> None:
        def preview() -> list[str]:
            return [line for line in words(Guest(order).get()).splitlines() if "og:" in line]

        first = preview()
        assert 'og:title" content="TEST · ' in first[0] and "Pay your share of Lea’s order." in first[1]
        ade.take(2)
        mates.give_back(order)
        assert preview() == first and not any(name in line for line in first for name in ("Finn", "Amy", "£"))


class TestTaking:
    @pytest.mark.rule("group.taken")
    def test_leads_to_the_share(self, zoe: Guest) -> None:
        assert zoe.take(2)["Location"] == f"{zoe.path}/2"
        page = words(zoe.get("/2"))
        assert "Your share" in page and "Finn" in page and "Kept for you until" in page
        assert "Finn’s share" in words(zoe.get())

    @pytest.mark.rule("group.taken")
    def test_a_share_that_was_just_taken_shows_a_notice_and_the_other_shares(
        self, zoe: Guest, ade: Guest, nameless: int
    ) -> None:
        zoe.take(2)
        answer = ade.take(2, name="Ade")
        page = words(answer)
        assert answer.status_code == 409 and "Finn’s share was just taken" in page
        assert 'value="Ade"' in page and "Take another, or ask Lea." in page

    @pytest.mark.rule("group.name")
    def test_of_a_share_without_a_name_asks_for_it(self, zoe: Guest, ade: Guest, nameless: int) -> None:
        assert zoe.take(nameless, name=" \x00 ").status_code == 422
        assert "Enter your name." in words(zoe.take(nameless))
        zoe.take(nameless, name="Zoe" + "e" * 40)
        assert share(nameless).claim_name == "Zoe" + "e" * 27
        assert "Zoeee" in words(ade.get())
        assert f"Zoe{'e' * 27}’s share" in words(zoe.get())

    @pytest.mark.rule("group.own_link")
    def test_does_not_reveal_the_shares_own_link(self, zoe: Guest) -> None:
        zoe.take(2)
        pages = [words(zoe.get()), words(zoe.get("/2"))]
        zoe.pay(2)
        pages += [words(zoe.get("/2")), words(zoe.get())]
        assert not any(share(2).token in page or "/pay/share/" in page for page in pages)

    @pytest.mark.rule("group.takes")
    def test_is_limited_by_network(self, zoe: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            share_claim_limits, "PER_ADDRESS", share_claim_limits.PER_ADDRESS._replace(maximum=2)
        )
        zoe.take(2)
        zoe.take(3)
        answer = zoe.take(2)
        assert answer.status_code == 429 and "Too many shares were taken from your network." in words(answer)
        assert share(2).claim_digest == "" and share(3).claim_digest != ""
        ShareTake.objects.update(created_at=clock.now() - share_claim_limits.PER_ADDRESS.within)
        assert zoe.take(2).status_code == 303

    def test_is_counted_only_until_its_record_is_deleted(self, zoe: Guest) -> None:
        zoe.take(2)
        tasks.delete_old_takes()
        assert ShareTake.objects.count() == 1
        ShareTake.objects.update(
            id=clock.first_id(clock.now() - share_claim_limits.RETENTION - timedelta(seconds=1))
        )
        tasks.delete_old_takes()
        assert not ShareTake.objects.exists()


class TestPayingByTheGroupLink:
    @pytest.mark.rule("group.kept")
    def test_pays_the_share_as_by_its_own_link(self, zoe: Guest, order: Checkout) -> None:
        zoe.take(2)
        assert zoe.pay(2)["Location"] == f"{zoe.path}/2"
        assert mates.settled(share(2)) == "reimbursed"
        assert "You paid £20.00" in plain(words(zoe.get("/2")))

    @pytest.mark.rule("group.pays")
    @pytest.mark.parametrize("step", ["", "/card", "/paid", "/confirmed"])
    def test_for_a_share_that_another_mate_took_leads_back(self, zoe: Guest, ade: Guest, step: str) -> None:
        zoe.take(2)
        assert ade.get(f"/2{step}")["Location"] == f"{ade.path}?taken=2"
        for post in ("/phone", "/code", "/decline", "/release", "/opt-in", "/another-card"):
            assert ade.post(f"/2{post}")["Location"] == f"{ade.path}?taken=2"
        assert "Finn’s share was just taken" in words(ade.get("?taken=2"))
        assert share(2).claim_digest != ""

    @pytest.mark.rule("group.kept")
    def test_holds_the_share_longer_once_signed_in(self, zoe: Guest) -> None:
        zoe.take(2)
        before = share(2).claimed_until
        zoe.sign_in(2)
        after = share(2).claimed_until
        assert before and after and (after - before).total_seconds() > 600

    @pytest.mark.rule("group.kept")
    def test_when_already_signed_in_reserves_the_share_for_longer_at_once(self, zoe: Guest) -> None:
        zoe.take(2)
        zoe.sign_in(2)
        zoe.post("/2/release")
        zoe.take(2)
        assert zoe.get("/2")["Location"] == f"{zoe.path}/2/card", "without another sign-in"
        until = share(2).claimed_until
        assert until and until - clock.now() > timedelta(minutes=14)
        zoe.take(3)
        until = share(3).claimed_until
        assert until and until - clock.now() <= timedelta(minutes=3), (
            "a sign-in is good for its own share alone"
        )

    @pytest.mark.rule("group.kept")
    def test_after_the_reservation_ended_leads_back(self, zoe: Guest, ade: Guest) -> None:
        zoe.take(2)
        pass_time()
        ade.take(2)
        assert zoe.sign_in(2)["Location"] == f"{zoe.path}?taken=2"

    @pytest.mark.rule("group.kept")
    @pytest.mark.parametrize(("step", "query"), [("/3/decline", "?left=3"), ("/3/release", "")])
    def test_going_back_frees_the_share(
        self, zoe: Guest, ade: Guest, nameless: int, step: str, query: str
    ) -> None:
        zoe.take(nameless, name="Zoe")
        assert "Give this share up" in words(zoe.get("/3"))
        back = zoe.post(step)["Location"]
        assert back == zoe.path + query and share(nameless).status == "open"
        assert ("You have not been charged" in words(zoe.client.get(back))) == bool(query)
        assert ade.take(nameless, name="Ade").status_code == 303

    @pytest.mark.rule("share.declines")
    def test_refusing_a_named_share_informs_the_lead(self, zoe: Guest, lead: Payer) -> None:
        zoe.take(2)
        assert "I’m not paying this" in words(zoe.get("/2"))
        back = zoe.post("/2/decline")["Location"]
        assert back == f"{zoe.path}/2" and share(2).status == "declined"
        assert "You said no" in words(zoe.client.get(back))
        assert "said no" in words(lead.get())
        lead.post("/cancel-share", share=str(share(2).pk))
        page = words(zoe.client.get(back, follow=True))
        assert "Lea is no longer asking for this" in page and "You said no" not in page

    @pytest.mark.rule("group.pays")
    def test_blocks_the_shares_own_link_while_it_is_taken(self, zoe: Guest) -> None:
        zoe.take(2)
        own = Client()
        path = PaymentTarget(share(2).checkout, share(2)).address()
        assert "This share is taken" in words(own.get(path))
        own.post(f"{path}/decline")
        assert share(2).status == "open"
        pass_time()
        assert "is asking you for" in words(own.get(path))


class TestTheQrCode:
    def test_is_black_on_white_and_leads_to_the_group(self, zoe: Guest) -> None:
        drawn = zoe.get("/qr.svg")
        assert drawn["Content-Type"] == "image/svg+xml" and b"#fff" in drawn.content
        assert drawn.content == qr_codes.svg(absolute(zoe.path))
        page = words(zoe.get("/qr"))
        assert "Scan, take a share, pay" in page and f"{zoe.path}/qr.svg" in page

    def test_page_updates_show_who_has_taken_a_share(self, zoe: Guest, ade: Guest) -> None:
        ade.take(2)
        part = words(zoe.client.get(f"{zoe.path}/qr", headers={"HX-Request": "true"}))
        assert "taken" in part and "free" in part and "<html" not in part

    def test_page_closes_to_where_it_was_opened(self, zoe: Guest, lead: Payer, order: Checkout) -> None:
        assert f'href="{zoe.path}"' in words(zoe.get("/qr"))
        assert f'href="/pay?id={order.pk}"' in words(lead.client.get(f"{zoe.path}/qr"))

    def test_page_closes_once_no_share_is_left(self, zoe: Guest, lead: Payer, order: Checkout) -> None:
        for row in order.payment_requests.all():
            mates.pay(row)
            assert mates.settled(row) == "reimbursed"
        for browser, where in ((zoe.client, zoe.path), (lead.client, f"/pay?id={order.pk}")):
            assert browser.get(f"{zoe.path}/qr")["Location"] == where
            part = browser.get(f"{zoe.path}/qr", headers={"HX-Request": "true"})
            assert part["HX-Redirect"] == where
        assert "Everyone has paid" in words(zoe.get())
        mates.give_back(order)
        assert zoe.get("/qr")["Location"] == zoe.path


@pytest.mark.rule("group.link")
def test_a_get_request_never_takes_or_declines_a_share(zoe: Guest) -> None:
    """A GET request must not take or decline a share, because chat apps open every link in a message."""
    for step in ("/take", "/2/decline", "/2/release", "/2/reconsider", "/2/phone"):
        assert zoe.get(step).status_code == 405, step
    assert {row.status for row in PaymentRequest.objects.all()} == {"open"}
    assert not PaymentRequest.objects.exclude(claim_digest="").exists()


@pytest.mark.rule("group.opens")
def test_a_stopped_shop_is_reported_even_if_all_shares_are_taken(
    zoe: Guest, ade: Guest, order: Checkout
) -> None:
    zoe.take(2)
    ade.take(3)
    another = Guest(order)
    assert "becomes free again" in words(another.get())
    operator_stops.suspend(order.merchant, reason="test")
    page = words(another.get())
    assert "can’t take payments right now" in page and "becomes free again" not in page
    assert "this page shows the free shares again." in page
