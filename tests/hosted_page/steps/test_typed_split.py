"""The lead's sign-in ends while the lead fills in the split form. The split must not be lost."""

import re
from typing import Any

import pytest

from checkout.models import Checkout
from hosted_page import payer
from hosted_page.models import SmsMessage
from hosted_page.steps import typed_split
from tests.hosted_page.browsers import TIME, Payer, words

pytestmark = pytest.mark.django_db
TYPED = {"split": "equal", "people": "4", "your_name": "Lea", "name": ["Finn", "", "Zoe"]}


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    """Return the browser of a signed-in payer who can request another code."""
    found = Payer(unpaid)
    found.sign_in()
    # Otherwise the number must wait for its next code.
    SmsMessage.objects.all().delete()
    return found


def send_too_late(lea: Payer, monkeypatch: pytest.MonkeyPatch, **typed: Any) -> Any:
    """Send the split after the sign-in has ended, and return the next page.

    The sign-in counts as ended only during the two requests of this function.
    """
    with monkeypatch.context() as patched:
        patched.setattr(payer, "LIFE", -1)
        answer = lea.client.post(f"/pay/split?id={lea.checkout.pk}", typed or TYPED)
        assert answer["Location"] == f"/pay?id={lea.checkout.pk}"
        return lea.get()


@pytest.mark.rule("sign_in.said")
class TestASignedOutLead:
    def test_sees_a_notice_and_the_saved_split(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        page = words(send_too_late(lea, monkeypatch))
        assert "You are signed out" in page and "your split is saved" in page
        assert "Your saved split" in page and "£22.50</strong> each" in page and "4 people" in page
        assert "Use the same number as before." in page
        assert not lea.checkout.payment_requests.exists()

    def test_sees_a_split_that_was_saved_before(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        lea.client.post(f"/pay/split?id={lea.checkout.pk}", TYPED)
        monkeypatch.setattr(payer, "LIFE", -1)
        assert "Your saved split" in words(lea.get())

    def test_is_not_a_payer_who_never_signed_in(self, unpaid: Checkout) -> None:
        stranger = Payer(unpaid)
        stranger.client.post(f"/pay/split?id={unpaid.pk}", TYPED)
        assert "You are signed out" not in words(stranger.get())
        assert "payer_typed" not in stranger.client.cookies

    def test_sees_no_notice_after_an_hour(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(payer, "LIFE", -1)
        monkeypatch.setattr(payer, "NOTICE_SECONDS", -1)
        assert "You are signed out" not in words(lea.get())

    def test_can_extend_the_sign_in_before_it_ends(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        page = words(lea.get("/split"))
        assert len(re.findall(rf"You are signed in until {TIME}\.", page)) == 2, "with a script, and without"
        assert 'data-stay="900"' in page
        before = lea.client.cookies[f"payer_{lea.checkout.pk.hex}"].value
        monkeypatch.setattr("django.core.signing.time.time", lambda: 4_000_000_000)
        assert lea.post("/stay").status_code == 403
        monkeypatch.undo()
        answer = lea.post("/stay")
        assert answer.status_code == 200 and answer.json()["lasts"] == payer.LIFE
        assert re.fullmatch(TIME, answer.json()["until"]), "it names its zone, as every time does"
        assert lea.client.cookies[f"payer_{lea.checkout.pk.hex}"].value >= before

    def test_reads_on_the_card_page_until_when_and_in_which_zone(self, lea: Payer) -> None:
        lea.post("/split", split="all")
        page = words(lea.client.get(lea.get("/card")["Location"]))
        assert len(re.findall(rf"You are signed in until {TIME}\.", page)) == 2, "with a script, and without"
        assert "js/session.js" in page


@pytest.mark.rule("sign_in.typed")
class TestTypedSplit:
    def test_is_restored_after_the_code(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        send_too_late(lea, monkeypatch)
        lea.client.cookies.pop(f"payer_{lea.checkout.pk.hex}")
        lea.post("/phone", phone="07700 900123")
        assert lea.post("/code", code=lea.code())["Location"] == f"/pay/split?id={lea.checkout.pk}"
        page = words(lea.get("/split"))
        assert 'value="Finn"' in page and 'value="Zoe"' in page and 'value="4"' in page
        assert lea.client.post(f"/pay/split?id={lea.checkout.pk}", TYPED).status_code == 303
        assert not lea.client.cookies["payer_typed"].value

    def test_keeps_the_units_of_a_split_by_item(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        typed = {"split": "item", "your_name": "Lea", "name": ["Finn", ""], "units-0": "1 2 0"}
        page = words(send_too_late(lea, monkeypatch, **typed))
        assert "2 people" in page and "£22.50</strong> for you" in page
        lea.client.cookies.pop(f"payer_{lea.checkout.pk.hex}")
        lea.sign_in()
        assert 'name="units-0" value="1 2 0"' in words(lea.get("/split"))

    def test_is_not_shown_to_another_person(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        send_too_late(lea, monkeypatch)
        lea.client.cookies.pop(f"payer_{lea.checkout.pk.hex}")
        lea.sign_in("07700 900456")
        assert 'value="Finn"' not in words(lea.get("/split"))

    def test_cannot_be_read_or_forged_by_others(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        send_too_late(lea, monkeypatch)
        assert "Finn" not in lea.client.cookies["payer_typed"].value
        for forged in ("x", "", "[]"):
            lea.client.cookies["payer_typed"] = forged
            assert lea.get("/split").status_code == 200

    def test_is_dropped_with_a_notice_if_it_does_not_fit_a_cookie(
        self, lea: Payer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        full = {**TYPED, "split": "own", "name": ["ن" * 30] * 19, "amount": ["1234.00"] * 19}
        assert "too long to keep" not in words(send_too_late(lea, monkeypatch, **full))
        assert len(lea.client.cookies["payer_typed"].value) <= typed_split.LONGEST
        lea.client.cookies.pop("payer_typed")
        lea.client.post(f"/pay/split?id={lea.checkout.pk}", TYPED)  # an earlier split, which was not too long
        page = words(send_too_late(lea, monkeypatch, **{**full, "name": ["ن" * 120] * 19}))
        assert "What you entered for the split was too long to keep." in page
        assert "your split is saved" not in page and "Your saved split" not in page
        assert "where you left off" not in page
        lea.client.cookies.pop(f"payer_{lea.checkout.pk.hex}")
        lea.post("/phone", phone="07700 900123")
        assert lea.post("/code", code=lea.code())["Location"] == f"/pay/split?id={lea.checkout.pk}"
        assert 'value="Finn"' in words(lea.get("/split")), "the split that was saved before"
