"""Erasure: a person's data is erased, and the payment records are kept."""

import fcntl
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from threading import Timer

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from pytest_django.fixtures import Settings

from checkout import mate_shares
from checkout.models import Checkout, Customer, MerchantCustomer, PaymentRequest, Prefill
from checkout.proof import ledger_proof
from checkout.remedies import settling_outside
from config.lib import clock, crypto
from hosted_page.models import CardTry, OptIn, SignInCode, SmsMessage
from hosted_page.privacy import data_subjects, erasure
from hosted_page.sms import outbox
from hosted_page.steps import declines
from payments.models import Merchant, Payment, Posting
from tests import factories, mates, outside
from tests.factories import CAUSE, CustomerFactory
from tests.hosted_page.privacy.persons import EMAIL, PHONE, run, tick
from tests.portal import stage
from webhooks import delivery, resending
from webhooks.models import Delivery, Event

pytestmark = [pytest.mark.django_db, pytest.mark.rule("privacy.erase")]
Pay = Callable[..., Checkout]


def reread(customer: Customer) -> Customer:
    return Customer.objects.get(pk=customer.pk)


class TestErasing:
    def test_deletes_number_name_and_email_address(self, order: Checkout, lea: Customer) -> None:
        code = SignInCode(subject=order.pk, phone=PHONE, created_at=clock.now(), expires_at=clock.now())
        code.save()
        SmsMessage.objects.create(
            kind="code",
            merchant=order.merchant,
            checkout_uuid=order.pk,
            subject=order.pk,
            phone_digest=outbox.number_digest(PHONE),
            created_at=clock.now(),
            ends_at=clock.now(),
        )
        CardTry.objects.create(
            subject=order.pk,
            phone_digest=declines.number_digests(PHONE)[0],
            address_digest="",
            created_at=clock.now(),
        )
        assert "Erased." in run("erase_person", "--phone", PHONE)
        assert (reread(lea).phone, reread(lea).name) == (None, "") and reread(lea).erased_at
        tick = OptIn.objects.get()
        assert (tick.email, tick.email_digest) == ("", "") and tick.opted_in_at
        assert not SignInCode.objects.exists() and not CardTry.objects.exists()
        assert SmsMessage.objects.get().phone_digest == ""
        everything = str(
            [list(model.objects.values()) for model in (Customer, OptIn, PaymentRequest, SmsMessage)]
        )
        assert PHONE not in everything and EMAIL not in everything and "Lea" not in everything

    @pytest.mark.rule("pledge.ends")
    def test_ends_the_pledges_of_a_mate(self, unpaid: Checkout) -> None:
        mate = CustomerFactory.create(phone=PHONE)
        mate_shares.make_lead(unpaid.pk, CustomerFactory.create())
        (share,) = mates.split(unpaid, 2000, everyone_first=True)
        mates.pay(share, mate=mate)
        erasure.erase(data_subjects.of_customer(mate.pk))
        share.refresh_from_db()
        assert share.status == "open" and mates.settled(share) == "open"
        assert Payment.objects.get().status == "voided"

    def test_keeps_payments_and_the_ledger(self, order: Checkout) -> None:
        before = list(Posting.objects.order_by("pk").values())
        run("erase_person", "--phone", PHONE)
        assert list(Posting.objects.order_by("pk").values()) == before
        assert Checkout.objects.get().status == "captured" and Payment.objects.get().card_last4 == "4242"
        assert ledger_proof.find_breaches() == []

    def test_frees_the_number_for_a_new_customer(self, order: Checkout, lea: Customer) -> None:
        run("erase_person", "--phone", PHONE)
        again = Customer.objects.get_or_create(phone=PHONE)[0]
        assert again.pk != lea.pk
        assert run("export_person", "--phone", PHONE).count(str(order.pk)) == 0

    def test_by_email_erases_a_customer_with_a_number(self, order: Checkout, lea: Customer) -> None:
        run("erase_person", "--email", EMAIL.upper())
        assert reread(lea).erased_at

    def test_withholds_consents_that_are_not_yet_sent_to_merchants(
        self, order: Checkout, lea: Customer
    ) -> None:
        factories.subscribe(order.merchant, url=stage.URL, event_types=["marketing.opted_in"])
        tick(order, lea)
        tick(order, None, "amy@example.com")
        hers, amys = Event.objects.filter(type="marketing.opted_in").order_by("pk")[1:]
        run("erase_person", "--phone", PHONE)
        hers.refresh_from_db()
        assert (bytes(hers.body), hers.plain_body) == (b"", b"") and hers.body_deleted_at
        assert hers.deliveries.get().status == "superseded"
        amys.refresh_from_db()
        assert b"amy@example.com" in amys.plain_body and amys.deliveries.get().status == "pending"

    def test_does_not_retry_a_consent_that_is_being_sent(self, order: Checkout, lea: Customer) -> None:
        factories.subscribe(order.merchant, url=stage.URL, event_types=["marketing.opted_in"])
        tick(order, lea)
        (claimed,) = delivery.claim(slots=1, general_slots=1)
        run("erase_person", "--phone", PHONE)
        delivery.record_results(
            [delivery.Result(claimed.delivery_id, claimed.lease_token, 500, "HTTP 500", 3)]
        )
        told = Delivery.objects.get()
        assert told.status == "superseded"
        page = stage.browser(stage.person(order.merchant, "owner")).get(f"/portal/deliveries/{told.pk}")
        assert (
            "The event’s personal data has been deleted, so the event is not sent again."
            in page.content.decode()
        )
        with pytest.raises(resending.BodyDeleted):
            resending.resend(order.merchant, told.pk, cause=factories.CAUSE)

    def test_by_email_erases_a_person_without_a_number(self, order: Checkout, lea: Customer) -> None:
        tick(order, None, "amy@example.com")
        run("erase_person", "--email", "amy@example.com")
        assert {row.email for row in OptIn.objects.all()} == {EMAIL, ""} and not reread(lea).erased_at

    def test_stores_nothing_of_a_consent_given_at_the_same_time(self, order: Checkout, lea: Customer) -> None:
        run("erase_person", "--phone", PHONE)
        tick(order, lea, "late@example.com")
        assert [row.email for row in OptIn.objects.all()] == [""] and reread(lea).name == ""

    def test_clears_a_share_that_was_sent_to_the_number(self, order: Checkout, acme: Merchant) -> None:
        other = factories.checkout(acme)
        Checkout.objects.filter(pk=other.pk).update(lead=CustomerFactory.create())
        mates.split(other, 2000)
        PaymentRequest.objects.update(name="Lea", phone=PHONE)
        run("erase_person", "--phone", PHONE)
        share = PaymentRequest.objects.get()
        assert (share.name, share.phone, share.amount) == ("", "", 2000)

    def test_clears_a_cancelled_share_of_a_mate_who_never_signed_in(self, unpaid: Checkout) -> None:
        mates.split(unpaid, 2000)
        PaymentRequest.objects.update(name="Finn", phone="+447700900777", status="cancelled")
        run("erase_person", "--phone", "+447700900777")
        assert PaymentRequest.objects.get().phone == ""

    def test_by_email_erases_consents_with_and_without_a_number(self, order: Checkout, lea: Customer) -> None:
        tick(order, None)
        run("erase_person", "--email", EMAIL)
        assert reread(lea).erased_at and {row.email for row in OptIn.objects.all()} == {""}

    def test_by_an_email_address_of_several_people_is_refused(self, order: Checkout) -> None:
        tick(order, CustomerFactory.create())
        with pytest.raises(CommandError, match="Several people"):
            run("erase_person", "--email", EMAIL)

    @pytest.mark.parametrize("arguments", [("--phone", "+447700900999"), ("--email", "no@example.com")])
    def test_of_an_unknown_person_is_refused(self, arguments: tuple[str, str]) -> None:
        with pytest.raises(CommandError, match="No person has this number"):
            run("erase_person", *arguments)


@pytest.mark.rule("privacy.open")
class TestErasureIsRefused:
    def refused(self, words: str) -> None:
        with pytest.raises(CommandError, match=words):
            run("erase_person", "--phone", PHONE)
        assert Customer.objects.filter(phone=PHONE, erased_at=None).exists()

    @pytest.mark.parametrize("status", ["created", "authorized", "refunding"])
    def test_while_an_order_is_open(
        self, unpaid: Checkout, lea: Customer, status: str, at: Callable[[str], Checkout]
    ) -> None:
        Checkout.objects.filter(pk=unpaid.pk).update(lead=lea)
        at(status)
        self.refused(f"order {unpaid.pk} is {status}")

    @pytest.mark.parametrize("status", ["voided", "expired", "refunded"])
    def test_not_after_the_order_has_ended(
        self, unpaid: Checkout, lea: Customer, status: str, at: Callable[[str], Checkout]
    ) -> None:
        Checkout.objects.filter(pk=unpaid.pk).update(lead=lea)
        at(status)
        mates.pump(unpaid.pk)
        run("erase_person", "--phone", PHONE)
        assert reread(lea).erased_at

    def test_while_a_mates_share_is_open(
        self, unpaid: Checkout, lea: Customer, at: Callable[[str], Checkout]
    ) -> None:
        Checkout.objects.filter(pk=unpaid.pk).update(lead=lea)
        at("shared")
        self.refused("share .* is (open|paid)")

    def test_while_a_dispute_is_open(self, order: Checkout, posted: list[int]) -> None:
        found = outside.dispute(order.payment)
        self.refused(f"dispute {found.pk}")
        outside.decide(found, is_won=True)
        run("erase_person", "--phone", PHONE)

    @pytest.mark.usefixtures("posted")
    def test_while_a_returned_refund_is_owed(self, refunded: Checkout) -> None:
        outside.come_back()
        refund = outside.returned(refunded)
        assert refunded.lead_id is not None
        person = data_subjects.of_customer(refunded.lead_id)
        with pytest.raises(erasure.StillNeeded, match=f"refund {refund.pk} has not reached the payer"):
            erasure.erase(person)
        settling_outside.settle_outside(refund.pk, note="Paid by bank transfer", cause=CAUSE)
        erasure.erase(person)

    def test_while_a_card_operation_is_open(self, unpaid: Checkout, lea: Customer, pay: Pay) -> None:
        Checkout.objects.filter(pk=unpaid.pk).update(lead=lea)
        pay(unpaid, mates.CHALLENGED)
        self.refused("has not ended")


@pytest.mark.rule("privacy.opt_ins")
class TestTheOwnersFunction:
    def test_clears_only_erased_persons(self, order: Checkout) -> None:
        known_as = [str(row.pk) for row in MerchantCustomer.objects.all()]
        with (
            pytest.raises(IntegrityError, match="not erased"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT erase_opt_ins(%s::uuid[], %s)", [known_as, crypto.encrypt("")])
        assert OptIn.objects.get().email == EMAIL

    @pytest.mark.parametrize(
        "change", ["email_digest = 'another'", "placement = 'app'", "opted_in_at = now()"]
    )
    def test_no_other_change_of_a_consent_is_possible(self, order: Checkout, change: str) -> None:
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"UPDATE hosted_page_optin SET {change}")


@pytest.mark.rule("privacy.again")
class TestAfterARestore:
    @pytest.fixture
    def file(self, tmp_path: Path, settings: Settings) -> Path:
        settings.ERASURES_FILE = str(tmp_path / "erasures")
        return tmp_path / "erasures"

    def test_is_erased_again(self, file: Path, order: Checkout, lea: Customer) -> None:
        run("erase_person", "--phone", PHONE)
        written = file.read_text()
        assert written.count("\n") == 2 and PHONE not in written and EMAIL not in written
        Customer.objects.filter(pk=lea.pk).update(phone=PHONE, name="Lea", erased_at=None)
        assert run("erase_person", "--again") == "1 erased again.\n"
        assert reread(lea).phone is None and file.read_text() == written

    def test_waits_while_another_process_writes_the_file(self, file: Path, order: Checkout) -> None:
        with file.open("a") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            ending = Timer(0.5, lambda: fcntl.flock(other, fcntl.LOCK_UN))
            ending.start()
            run("erase_person", "--phone", PHONE)
            assert ending.finished.is_set()

    def test_a_person_who_returned_after_the_erasure_is_kept(self, file: Path, order: Checkout) -> None:
        tick(order, None, "amy@example.com")
        run("erase_person", "--phone", PHONE)
        run("erase_person", "--email", "amy@example.com")
        again = CustomerFactory.create(phone=PHONE, name="Lea")
        tick(order, None, "amy@example.com")
        assert run("erase_person", "--again") == "0 erased again.\n"
        assert reread(again).phone == PHONE
        assert OptIn.objects.exclude(email_digest="").filter(person__customer=None).exists()

    def test_an_email_address_without_a_number_is_erased_again(self, file: Path, order: Checkout) -> None:
        tick(order, None, "amy@example.com")
        kept = OptIn.objects.get(person__customer=None)
        run("erase_person", "--email", "amy@example.com")
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            OptIn.objects.filter(pk=kept.pk).update(email="amy@example.com", email_digest=kept.email_digest)
            cursor.execute("SET LOCAL session_replication_role = origin")
        assert run("erase_person", "--again") == "1 erased again.\n"
        assert OptIn.objects.get(pk=kept.pk).email == ""

    @pytest.mark.parametrize("is_older", [True, False], ids=["restored", "said anew"])
    def test_data_from_an_older_order_is_erased_again(
        self, file: Path, acme: Merchant, is_older: bool
    ) -> None:
        order = factories.checkout(acme, customer={"phone": PHONE, "name": "Lea"})
        factories.checkout(acme, customer={"phone": "+447700900999", "name": "Mia"})
        (kept,) = Prefill.objects.filter(checkout=order)
        run("erase_person", "--phone", PHONE)
        assert [row.name for row in Prefill.objects.all()] == ["Mia"]
        kept.save(force_insert=True)
        if not is_older:
            Checkout.objects.filter(pk=order.pk).update(created_at=clock.now())
        assert run("erase_person", "--again") == f"{int(is_older)} erased again.\n"
        assert Prefill.objects.filter(phone=PHONE).exists() is not is_older

    def test_the_number_of_an_asked_mate_is_erased_again(self, file: Path, acme: Merchant) -> None:
        share = mates.split(factories.checkout(acme), 1000)[0]
        kept = PaymentRequest.objects.filter(pk=share.pk)
        kept.update(phone=PHONE, name="Finn")
        run("erase_person", "--phone", PHONE)
        kept.update(phone=PHONE, name="Finn")
        assert run("erase_person", "--again") == "1 erased again.\n"
        assert (kept.get().phone, kept.get().name) == ("", "")
        assert run("erase_person", "--again") == "0 erased again.\n"

    def test_reports_persons_with_open_orders(self, file: Path, unpaid: Checkout, lea: Customer) -> None:
        erasure.erase(data_subjects.find_person(phone=PHONE))
        Customer.objects.filter(pk=lea.pk).update(phone=PHONE, erased_at=None)
        Checkout.objects.filter(pk=unpaid.pk).update(lead=lea)
        said = StringIO()
        with pytest.raises(SystemExit):
            call_command("erase_person", "--again", stdout=said)
        assert "still needed: order" in said.getvalue()

    def test_requires_the_erasures_file(self) -> None:
        with pytest.raises(CommandError, match="ERASURES_FILE"):
            run("erase_person", "--again")

    def test_nothing_is_erased_if_the_file_cannot_be_written(
        self, settings: Settings, order: Checkout
    ) -> None:
        settings.ERASURES_FILE = "/nowhere/erasures"
        with pytest.raises(FileNotFoundError):
            run("erase_person", "--phone", PHONE)
        assert Customer.objects.filter(phone=PHONE).exists()


class TestDataSentByMerchants:
    def order_with(self, acme: Merchant, **customer: str) -> Checkout:
        return factories.checkout(acme, customer=customer)

    @pytest.mark.rule("prefill.kept")
    def test_is_erased_with_a_person_who_never_signed_in(self, acme: Merchant) -> None:
        self.order_with(acme, phone=PHONE, name="Lea")
        self.order_with(acme, phone="+447700900999", name="Mia")
        assert "Erased." in run("erase_person", "--phone", PHONE)
        assert [row.name for row in Prefill.objects.all()] == ["Mia"]

    @pytest.mark.rule("privacy.export")
    def test_is_exported_only_for_its_person(self, acme: Merchant, lea: Customer) -> None:
        """The export of Lea's data contains what merchants sent about her, and no data about other people.

        Lea is the lead of two orders. The merchant sent Mia's number and name with the first order, and only
        a name with the second.
        """
        mias, hers = (
            self.order_with(acme, phone="+447700900999", name="Mia"),
            self.order_with(acme, name="Leo"),
        )
        Checkout.objects.filter(pk__in=[mias.pk, hers.pk]).update(lead=lea)
        self.order_with(acme, phone=PHONE, locale="fr")
        told = json.loads(run("export_person", "--phone", PHONE))["said_by_merchants"]
        assert {(row["phone"], row["name"], row["locale"]) for row in told} == {
            (None, "Leo", None),
            (PHONE, None, "fr"),
        }
        assert (
            json.loads(run("export_person", "--phone", PHONE, "--merchant", str(acme.pk)))[
                "said_by_merchants"
            ]
            == []
        )
