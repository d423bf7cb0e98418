"""A new password is refused if it is common, contains words about the person, or is one of the person's last four."""

import time
from datetime import timedelta

import pytest
from django.contrib.auth import hashers, password_validation
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from payments.models import Merchant
from portal.accounts import passwords
from portal.models import Invitation, PreviousPassword, Role, User
from tests.portal import people
from tests.portal.people import EMAIL, PASSWORD

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.passwords")]
GOOD = [f"{word} violin above the kettle" for word in ("orange", "silver", "crimson", "yellow", "purple")]


def refusals(password: str, user: User | None = None) -> set[str]:
    """Return the codes of the validators that refuse a password."""
    try:
        password_validation.validate_password(password, user)
    except ValidationError as refused:
        return {str(error.code) for error in refused.error_list}
    return set()


def set_password(user: User, password: str) -> None:
    user.set_password(password)
    user.save()


class TestCommon:
    @pytest.mark.parametrize(
        "password",
        [
            "password1234",
            "PassWord1234",
            "password20262026",
            "Monkey-2026-2026!!",
            "qwertyuiop12",
            "correcthorsebatterystaple",
            "letmeinletmeinletmein",
            "aaaaaaaaaaaaaaaaaaaa",
            "123456789012345678",
        ],
    )
    def test_is_refused_in_any_case_repeated_or_with_digits_after_it(self, password: str) -> None:
        assert "password_too_common" in refusals(password)

    def test_list_holds_far_more_than_the_3000_most_common_of_12_characters(self) -> None:
        listed = password_validation.CommonPasswordValidator(passwords.BREACHED).passwords
        assert len([password for password in listed if len(password) >= 12]) > 20_000

    def test_of_djangos_list_each_of_12_characters_is_refused(self) -> None:
        listed = password_validation.CommonPasswordValidator().passwords
        long_ones = [password for password in listed if len(password) >= 12]
        assert len(long_ones) > 100
        assert [word for word in long_ones if "password_too_common" not in refusals(word)] == []

    @pytest.mark.parametrize("password", [*GOOD, "hT3vq9-Zr_81mLw0Kd", "918273640518273", "é" * 128])
    def test_other_passwords_are_accepted_with_any_characters(self, password: str) -> None:
        assert refusals(password) == set()

    def test_longest_accepted_form_costs_little(self, lea: User) -> None:
        began = time.process_time()
        assert "password_too_long" in refusals("ab" * 131_072, lea)
        assert time.process_time() - began < 1


class TestContextWords:
    @pytest.mark.parametrize(
        "password",
        [
            "my lea-m.winter violin",
            "violin at ACME kettle",
            "violin a-c-m-e kettle",
            "violin Ácmé kettle",
            "acme tickets violin",
            "violin tickets kettle",
            "violin checkout kettle",
            "a merchant violin above",
            "violin owner kettle",
        ],
    )
    def test_are_refused(self, acme: Merchant, password: str) -> None:
        user = people.join(acme, email="lea-m.winter@mail.acme.example")
        assert "password_with_context_word" in refusals(password, user)

    def test_error_names_the_word(self, lea: User) -> None:
        with pytest.raises(ValidationError, match="contains “acme”"):
            passwords.ContextWordsValidator().validate("violin Acme kettle", lea)

    def test_of_other_merchants_and_without_a_person_are_accepted(self, lea: User, rival: Merchant) -> None:
        assert refusals("violin above rival kettle", lea) == set()
        assert refusals("violin above acme kettle") == set()

    def test_of_the_inviting_merchant_are_refused_at_joining(self, acme: Merchant, lea: User) -> None:
        invitation = Invitation.objects.create(
            merchant=acme,
            email="Dora@mail.example",
            role=Role.VIEWER,
            token_digest="x",
            invited_by=lea,
            expires_at=timezone.now() + timedelta(days=1),
        )
        dora, password = User(email="dora@mail.example"), "violin tickets kettle"
        assert refusals(password, dora) == {"password_with_context_word"}
        invitation.ended_at = timezone.now()
        invitation.save()
        assert refusals(password, dora) == set()


class TestPrevious:
    def test_last_four_are_refused_and_the_fifth_is_accepted(self, lea: User) -> None:
        for password in GOOD[:4]:
            set_password(lea, password)
        assert [refusals(password, lea) for password in GOOD[:4]] == [{"password_used_before"}] * 4
        assert refusals(GOOD[4], lea) == set()
        set_password(lea, GOOD[4])
        assert refusals(GOOD[0], lea) == set()

    def test_at_most_four_hashes_are_kept_and_no_password(self, lea: User) -> None:
        for password in GOOD:
            set_password(lea, password)
        kept = list(PreviousPassword.objects.filter(user=lea).values_list("encoded", flat=True))
        assert len(kept) == 4 and lea.password in kept
        assert not any(password in encoded for password in GOOD for encoded in kept)

    def test_every_way_to_set_a_password_keeps_its_hash(self, acme: Merchant) -> None:
        for person in (
            User.objects.create_user(EMAIL, GOOD[0]),
            User.objects.create_superuser("o@x.example", GOOD[1]),
        ):
            assert PreviousPassword.objects.get(user=person).encoded == person.password
        people.create_merchant("Night Ferries", "--email", "noa@ferries.example")
        assert PreviousPassword.objects.filter(user__email="noa@ferries.example").count() == 1

    def test_are_compared_only_if_all_other_checks_pass(
        self, lea: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for password in GOOD:
            set_password(lea, password)
        compared: list[str] = []

        def compare(password: str, encoded: str) -> bool:
            compared.append(encoded)
            return False

        monkeypatch.setattr(passwords, "check_password", compare)
        for refused in ("short", "password1234", "violin acme kettle", "x" * 200):
            assert refusals(refused, lea)
        assert compared == []
        assert refusals("a lamp below the harbour", lea) == set()
        assert len(compared) == 4

    def test_hashes_of_another_hasher_are_not_compared(self, lea: User) -> None:
        set_password(lea, GOOD[0])
        other = hashers.make_password(GOOD[1], hasher=PBKDF2PasswordHasher())
        PreviousPassword.objects.create(user=lea, encoded=other)
        assert refusals(GOOD[1], lea) == set()
        assert refusals(GOOD[0], lea) == {"password_used_before"}

    def test_are_refused_at_a_change(self, client: Client, lea: User) -> None:
        people.log_in(client)
        fields = {"oldpassword": PASSWORD, "password1": PASSWORD, "password2": PASSWORD}
        page = client.post("/accounts/password/change/", fields)
        assert "one of your last 4 passwords" in page.content.decode()

    def test_are_refused_at_a_reset(self, client: Client, lea: User) -> None:
        client.post("/accounts/password/reset/", {"email": EMAIL})
        link = people.mailed(r"http\S+/key/\S+")
        page = client.get(link[link.index("/accounts") :], follow=True)
        path = page.redirect_chain[-1][0]
        refused = client.post(path, {"password1": PASSWORD, "password2": PASSWORD})
        assert "one of your last 4 passwords" in refused.content.decode()
        assert client.post(path, {"password1": GOOD[0], "password2": GOOD[0]}).status_code == 302
