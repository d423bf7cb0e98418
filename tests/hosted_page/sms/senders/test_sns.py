"""The sender that uses boto3 and Amazon SNS, tested with moto's server.

For responses that moto never sends, the tests use a test double.
"""

import logging
from collections.abc import Iterator

import pytest
from django.core.exceptions import ImproperlyConfigured
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.server import ThreadedMotoServer
from moto.sns.models import sns_backends
from pytest_django.fixtures import Settings

from hosted_page.sms import senders
from hosted_page.sms.senders import InDoubt, NotAccepted, NotSent, Refused, sns
from hosted_page.sms.senders.sns import SnsSender
from tests.hosted_page.sms.senders import doubles
from tests.hosted_page.sms.senders.doubles import Answer, Double

LEA, CODE = "+447700900123", "904117"
WORDS = f"{CODE} is your code for Acme Tickets"
REGION = "eu-west-2"
TAKEN = """<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult>
<MessageId>94f20ce6-13c5-43a0-9a9e-ca52d816e90b</MessageId></PublishResult></PublishResponse>"""
FAILED = """<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>
<Code>{code}</Code><Message>Invalid parameter: {phone}</Message></Error><RequestId>9</RequestId></ErrorResponse>"""


@pytest.fixture(autouse=True)
def _configured(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "key-of-tests",
        "AWS_SECRET_ACCESS_KEY": "secret-of-tests",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)
    settings.SMS_SENDER_IDS = {}


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", "http://{}:{}".format(*server.get_host_and_port()))
    try:
        yield
    finally:
        sns_backends[DEFAULT_ACCOUNT_ID][REGION].reset()
        server.stop()


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    with doubles.serving(lambda _: Answer(200, TAKEN, "text/xml")) as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", made.url)
        yield made


def send(phone: str = LEA) -> None:
    SnsSender().send(phone, WORDS, key="019f8b6e-0000-7000-8000-000000000001")


def failure(phone: str = LEA) -> tuple[type[NotSent], str]:
    with pytest.raises(NotSent) as raised:
        send(phone)
    assert raised.value.__cause__ is None and raised.value.__suppress_context__
    return type(raised.value), raised.value.reason


def attributes(form: dict[str, str]) -> dict[str, str]:
    """Return the attributes of the message by name. Each attribute comes in two numbered form fields."""
    names = {name: value for name, value in form.items() if name.endswith(".Name")}
    return {value: form[name.replace(".Name", ".Value.StringValue")] for name, value in names.items()}


class TestAMessage:
    def test_arrives_at_moto(self, moto: None) -> None:
        send()
        assert list(sns_backends[DEFAULT_ACCOUNT_ID][REGION].sms_messages.values()) == [(LEA, WORDS)]

    def test_is_one_transactional_request(self, double: Double) -> None:
        send()
        (request,) = double.requests
        assert (request.form["Action"], request.form["PhoneNumber"]) == ("Publish", LEA)
        assert request.form["Message"] == WORDS
        assert attributes(request.form) == {"AWS.SNS.SMS.SMSType": "Transactional"}
        assert f"/{REGION}/sns/aws4_request" in request.headers["authorization"]

    @pytest.mark.rule("sms.sender_id")
    def test_shows_the_sender_of_its_country(self, double: Double, settings: Settings) -> None:
        settings.SMS_SENDER_IDS = {"GB": "Checkout", "FR": "+33700000000"}
        for phone in (LEA, "+33612345678", "+4915112345678"):
            send(phone)
        british, french, german = (attributes(request.form) for request in double.requests)
        assert british["AWS.SNS.SMS.SenderID"] == "Checkout"
        assert french["AWS.MM.SMS.OriginationNumber"] == "+33700000000"
        assert set(german) == {"AWS.SNS.SMS.SMSType"}


@pytest.mark.rule("sms.doubt")
class TestAFailure:
    def test_of_the_number_is_final_at_moto(self, moto: None) -> None:
        assert failure("+44 7700 900123") == (Refused, "invalid_number")

    @pytest.mark.parametrize(
        ("status", "code", "reason"),
        [
            *((400, code, reason) for code, reason in sns.REASONS.items()),
            (400, "UserError", "sns_UserError"),
            (403, "a b", "other"),
        ],
    )
    def test_that_sns_names_is_final(self, double: Double, status: int, code: str, reason: str) -> None:
        double.act = lambda _: Answer(status, FAILED.format(code=code, phone=LEA), "text/xml")
        assert failure() == (Refused, reason)
        assert len(double.requests) == 1

    @pytest.mark.parametrize(
        ("status", "code"), [(429, "Anything"), *((400, code) for code in sorted(sns.THROTTLED))]
    )
    def test_for_too_many_requests_counts_as_not_accepted(
        self, double: Double, status: int, code: str
    ) -> None:
        double.act = lambda _: Answer(status, FAILED.format(code=code, phone=LEA), "text/xml")
        assert failure() == (NotAccepted, "too_many_requests")
        assert len(double.requests) == 1, "boto3 does not repeat it by itself"

    def test_to_connect_counts_as_not_accepted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for url in (f"http://127.0.0.1:{doubles.closed_port()}", "http://nobody.invalid"):
            monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", url)
            assert failure() == (NotAccepted, "no_connection")

    @pytest.mark.parametrize("status", [500, 503])
    def test_at_amazon_leaves_the_message_in_doubt(self, double: Double, status: int) -> None:
        double.act = lambda _: Answer(status, FAILED.format(code="InternalError", phone=LEA), "text/xml")
        assert failure() == (InDoubt, f"http_{status}")
        assert len(double.requests) == 1, "boto3 does not repeat it by itself"

    @pytest.mark.parametrize("fault", ["hang", "reset"])
    def test_to_answer_leaves_the_message_in_doubt(
        self, double: Double, monkeypatch: pytest.MonkeyPatch, fault: str
    ) -> None:
        monkeypatch.setattr(senders, "SECONDS", 0.3)
        double.fault = fault
        assert failure() == (InDoubt, "no_answer")
        assert len(double.requests) == 1, "boto3 does not repeat it by itself"

    def test_of_an_answer_that_cannot_be_read_leaves_it_in_doubt(self, double: Double) -> None:
        double.act = lambda _: Answer(200, "<html", "text/html")
        assert failure() == (InDoubt, "no_answer")


@pytest.mark.rule("environment.table")
class TestTheStart:
    @pytest.mark.parametrize(
        ("missing", "words"),
        [("AWS_DEFAULT_REGION", "set AWS_DEFAULT_REGION"), ("AWS_ACCESS_KEY_ID", "SNS wants credentials")],
    )
    def test_is_refused_without_a_required_variable(
        self, monkeypatch: pytest.MonkeyPatch, missing: str, words: str
    ) -> None:
        monkeypatch.delenv(missing)
        if missing == "AWS_ACCESS_KEY_ID":
            monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(ImproperlyConfigured, match=words):
            SnsSender()

    def test_without_credentials_that_vanish_later_refuses_each_message(
        self, double: Double, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = SnsSender()
        monkeypatch.setattr(made.client._request_signer, "_credentials", None)
        with pytest.raises(Refused, match="no_credentials"):
            made.send(LEA, WORDS, key="x")


@pytest.mark.rule("secret.logs")
def test_neither_number_nor_code_nor_key_is_logged(double: Double, caplog: pytest.LogCaptureFixture) -> None:
    double.act = lambda _: Answer(400, FAILED.format(code="OptedOut", phone=LEA), "text/xml")
    with caplog.at_level(logging.INFO):
        failure()
    for secret in (LEA[1:], CODE, "secret-of-tests"):
        assert secret not in caplog.text
