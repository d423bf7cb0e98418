"""Signatures are those that OpenSSL computes, and the verifier checks for errors in a fixed order."""

import base64
import hmac
from collections import Counter
from operator import attrgetter
from typing import get_args

import pytest

from tests.webhooks import vectors
from tests.webhooks.vectors import Vector
from webhooks import signing

NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
AT = 1_780_000_000
BODY = '{"id": "evt_1", "data": {"name": "Zoë"}}'.encode()


def refusal(header: str | None, body: bytes = BODY, now: int = AT, secrets: tuple[str, ...] = (NEW,)) -> str:
    with pytest.raises(signing.VerificationError) as refused:
        signing.verify(header, body, secrets, now)
    return refused.value.reason


@pytest.mark.rule("signing.secret")
class TestNewSecret:
    def test_is_whsec_and_the_base64_of_32_bytes(self) -> None:
        secret = signing.new_secret()
        assert secret.startswith("whsec_")
        assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32

    def test_never_repeats(self) -> None:
        assert len({signing.new_secret() for _ in range(100)}) == 100


class TestSign:
    @pytest.mark.rule("signing.header")
    def test_agrees_with_openssl(self) -> None:
        # The output of: printf '1780000000.{"id": "evt_1"}' | openssl dgst -sha256 -hmac whsec_bm5u…
        hexadecimal = "a9866806f2d2a0b85aa0c1d826cb9dcacd2fec2c447db2a69e5601002824e6b7"
        assert signing.sign([NEW], b'{"id": "evt_1"}', AT) == f"t={AT},v1={hexadecimal}"

    @pytest.mark.rule("signing.header")
    def test_writes_the_newest_secret_first_and_no_spaces(self) -> None:
        new, old = (signing.sign([secret], BODY, AT).split(",")[1] for secret in (NEW, OLD))
        assert signing.sign([NEW, OLD], BODY, AT) == f"t={AT},{new},{old}"


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_valid_only_in_python_are_refused(constant: str) -> None:
    body = f'{{"id": {constant}}}'.encode()
    assert refusal(signing.sign([NEW], body, AT), body) == "invalid_json"


class TestVectors:
    @pytest.mark.rule("signing.verify")
    @pytest.mark.parametrize("vector", vectors.X_SERVICE_SIGNATURE, ids=attrgetter("name"))
    def test_verify_returns_the_verdict(self, vector: Vector) -> None:
        header = vector.headers.get("x-service-signature")
        if vector.is_accepted:
            assert isinstance(signing.verify(header, vector.body, vector.secrets, vector.now), dict)
        else:
            with pytest.raises(signing.VerificationError) as refused:
                signing.verify(header, vector.body, vector.secrets, vector.now)
            assert refused.value.reason == vector.verdict

    def test_sign_writes_what_the_vectors_call_signed(self) -> None:
        signed = [v for v in vectors.X_SERVICE_SIGNATURE if v.signed_with and v.timestamp is not None]
        assert len(signed) > 40
        for vector in signed:
            header = signing.sign(vector.signed_with or [], vector.body, vector.timestamp or 0)
            assert header == vector.headers["x-service-signature"], vector.name

    @pytest.mark.rule("signing.standard")
    def test_standard_headers_are_what_the_vectors_call_signed(self) -> None:
        signed = [v for v in vectors.STANDARD_WEBHOOKS if v.signed_with and v.timestamp is not None]
        assert len(signed) > 20
        for vector in signed:
            made = signing.standard_headers(
                vector.signed_with or [], vector.body, vector.timestamp or 0, event_id=vector.event_id
            )
            assert made == vector.headers, vector.name

    def test_every_reason_has_vectors(self) -> None:
        reasons = Counter(vector.verdict for vector in vectors.X_SERVICE_SIGNATURE)
        assert set(reasons) == {"accepted", *get_args(signing.Reason)}
        assert min(reasons.values()) > 10

    def test_the_text_of_a_body_equals_its_bytes(self) -> None:
        for name, forms in vectors.FILE["bodies"].items():
            raw = base64.b64decode(forms["base64"], validate=True)
            if forms["text"] is None:
                with pytest.raises(UnicodeDecodeError):
                    raw.decode()
            else:
                assert forms["text"].encode() == raw, name


class TestVerify:
    def test_returns_the_envelope(self) -> None:
        envelope = signing.verify(signing.sign([NEW], BODY, AT), BODY, [NEW], AT)
        assert envelope == {"id": "evt_1", "data": {"name": "Zoë"}}

    def test_ignores_an_empty_secret(self) -> None:
        assert refusal(signing.sign([""], BODY, AT), secrets=(NEW, "")) == "no_matching_signature"

    def test_reports_a_header_that_begins_with_a_space_as_malformed(self) -> None:
        assert refusal(f" {signing.sign([NEW], BODY, AT)}") == "malformed_header"

    @pytest.mark.parametrize("entry", ["", "é", "\udce9", "0" * 64])
    def test_refuses_an_entry_that_matches_nothing(self, entry: str) -> None:
        assert refusal(f"t={AT},v1={entry}") == "no_matching_signature"

    @pytest.mark.rule("signing.verify")
    @pytest.mark.parametrize("difference", [-300, 0, 300])
    def test_accepts_up_to_the_tolerance_both_ways(self, difference: int) -> None:
        assert signing.verify(signing.sign([NEW], BODY, AT), BODY, [NEW], AT + difference)

    @pytest.mark.rule("signing.verify")
    def test_compares_every_pair_in_constant_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compared: list[tuple[bytes, bytes]] = []
        original = hmac.compare_digest

        def count(given: bytes, wanted: bytes) -> bool:
            compared.append((given, wanted))
            return original(given, wanted)

        monkeypatch.setattr(hmac, "compare_digest", count)
        signing.verify(signing.sign([NEW, OLD], BODY, AT), BODY, [NEW, OLD], AT)
        assert len(compared) == 4
