"""The sender that uses Twilio's library, tested with a double of Twilio's API."""

import logging
from collections.abc import Iterator
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from hosted_page.sms import senders
from hosted_page.sms.senders import InDoubt, NotAccepted, NotSent, Refused, twilio
from hosted_page.sms.senders.twilio import TwilioSender
from tests.hosted_page.sms.senders import doubles, twilio_double
from tests.hosted_page.sms.senders.doubles import Answer, Double
from tests.hosted_page.sms.senders.twilio_double import ACCOUNT, KEY, OWN, SERVICE

LEA, CODE = "+447700900123", "904117"
WORDS = f"{CODE} is your code for Acme Tickets"
ID = UUID("019f8b6e-0000-7000-8000-000000000001")


@pytest.fixture(autouse=True)
def _configured(settings: Settings) -> None:
    settings.TWILIO_ACCOUNT_SID, settings.TWILIO_AUTH_TOKEN = ACCOUNT, KEY
    settings.TWILIO_FROM, settings.TWILIO_MESSAGING_SERVICE_SID = OWN, ""
    settings.BASE_URL, settings.SMS_SENDER_IDS = "https://checkout.example", {}


@pytest.fixture
def double() -> Iterator[Double]:
    with doubles.serving(twilio_double.act) as made:
        yield made


def sender_at(url: str) -> TwilioSender:
    made = TwilioSender()
    made.client.api.base_url = url
    return made


def send(double: Double, phone: str = LEA) -> None:
    sender_at(double.url).send(phone, WORDS, key=str(ID))


def failure(double: Double, phone: str = LEA) -> tuple[type[NotSent], str]:
    with pytest.raises(NotSent) as raised:
        send(double, phone)
    assert raised.value.__cause__ is None and raised.value.__suppress_context__
    return type(raised.value), raised.value.reason


class TestAMessage:
    def test_is_one_request_with_number_words_and_where_to_call_back(self, double: Double) -> None:
        send(double)
        (request,) = double.requests
        assert request.form == {
            "To": LEA,
            "From": OWN,
            "Body": WORDS,
            "StatusCallback": f"https://checkout.example/sms/twilio/{ID}",
            "ValidityPeriod": "600",
        }

    def test_goes_by_the_messaging_service_if_there_is_one(self, double: Double, settings: Settings) -> None:
        settings.TWILIO_FROM, settings.TWILIO_MESSAGING_SERVICE_SID = "", SERVICE
        send(double)
        form = double.requests[0].form
        assert form["MessagingServiceSid"] == SERVICE and "From" not in form

    @pytest.mark.rule("sms.sender_id")
    @pytest.mark.parametrize("service", ["", SERVICE])
    def test_shows_the_sender_of_its_country(self, double: Double, settings: Settings, service: str) -> None:
        settings.SMS_SENDER_IDS = {"GB": "Checkout"}
        settings.TWILIO_FROM, settings.TWILIO_MESSAGING_SERVICE_SID = "" if service else OWN, service
        send(double)
        send(double, "+33612345678")
        british, french = (request.form for request in double.requests)
        assert british["From"] == "Checkout" and "MessagingServiceSid" not in british
        assert french.get("From") == (None if service else OWN)


@pytest.mark.rule("sms.doubt")
class TestAFailure:
    @pytest.mark.parametrize(
        ("phone", "reason"),
        [
            ("+15005550001", "invalid_number"),
            ("+15005550002", "number_not_reachable"),
            ("+15005550003", "country_not_enabled"),
            ("+15005550004", "opted_out"),
            ("+15005550009", "no_mobile_number"),
            ("+15005550010", "twilio_21635"),
        ],
    )
    def test_of_the_number_is_final(self, double: Double, phone: str, reason: str) -> None:
        assert failure(double, phone) == (Refused, reason)

    @pytest.mark.parametrize("sender", ["+15005550001", "+15005550007"])
    def test_of_the_sender_is_final(self, double: Double, settings: Settings, sender: str) -> None:
        settings.TWILIO_FROM = sender
        assert failure(double) == (Refused, "unknown_sender")

    def test_of_the_credentials_is_final(self, double: Double, settings: Settings) -> None:
        settings.TWILIO_AUTH_TOKEN = "another"
        assert failure(double) == (Refused, "wrong_credentials")

    @pytest.mark.parametrize("code", sorted(twilio.REASONS))
    def test_with_a_known_code_has_its_reason(self, double: Double, code: int) -> None:
        double.act = lambda _: twilio_double.error(400, code, LEA)
        assert failure(double) == (Refused, twilio.REASONS[code])

    @pytest.mark.parametrize("body", ["<html>", "{}", '{"code": "x y", "message": "?"}'])
    def test_without_a_readable_reason_is_final(self, double: Double, body: str) -> None:
        double.act = lambda _: Answer(400, body)
        kind, reason = failure(double)
        assert kind is Refused and reason in {"http_400", "other"}

    def test_for_too_many_requests_counts_as_not_accepted(self, double: Double, settings: Settings) -> None:
        double.act = lambda _: twilio_double.error(429, 20429, "Too Many Requests")
        assert failure(double) == (NotAccepted, "too_many_requests")
        double.act, settings.TWILIO_FROM = twilio_double.act, "+15005550008"
        assert failure(double) == (NotAccepted, "too_many_requests")

    def test_to_connect_counts_as_not_accepted(self, double: Double) -> None:
        for url in (f"http://127.0.0.1:{doubles.closed_port()}", "http://nobody.invalid"):
            with pytest.raises(NotAccepted) as raised:
                sender_at(url).send(LEA, WORDS, key=str(ID))
            assert raised.value.reason == "no_connection"

    @pytest.mark.parametrize("status", [302, 500, 502, 503])
    def test_at_twilio_leaves_the_message_in_doubt(self, double: Double, status: int) -> None:
        double.act = lambda _: Answer(status, "<html>down</html>", "text/html")
        assert failure(double) == (InDoubt, f"http_{status}")
        assert len(double.requests) == 1, "it is not repeated"

    @pytest.mark.parametrize("fault", ["hang", "reset"])
    def test_to_answer_leaves_the_message_in_doubt(
        self, double: Double, monkeypatch: pytest.MonkeyPatch, fault: str
    ) -> None:
        monkeypatch.setattr(senders, "SECONDS", 0.3)
        double.fault = fault
        assert failure(double) == (InDoubt, "no_answer")
        assert len(double.requests) == 1, "it is not repeated"

    def test_of_an_answer_that_cannot_be_read_leaves_it_in_doubt(self, double: Double) -> None:
        double.act = lambda _: Answer(201, "<html>")
        assert failure(double) == (InDoubt, "no_answer")


@pytest.mark.rule("secret.logs")
def test_neither_number_nor_code_nor_key_is_logged(double: Double, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        send(double)
        failure(double, "+15005550004")
    for secret in (LEA[1:], "15005550004", CODE, KEY):
        assert secret not in caplog.text
