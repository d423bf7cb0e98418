"""The settings form accepts only valid hosts of a merchant's shop."""

import pytest
from pytest_django.fixtures import Settings

from payments.settings_form import SettingsForm
from tests.portal import stage


def wrong(**changes: str) -> set[str]:
    return set(SettingsForm(stage.FORM | changes).errors)


class TestShop:
    @pytest.mark.rule("page.shop")
    @pytest.mark.parametrize(
        ("url", "is_taken"),
        [
            ("", True),
            ("https://shop.example", True),
            ("https://shop.example:8443/a?b=c#d", True),
            ("https://münchen.example/", True),
            ("http://shop.example", False),
            ("//shop.example", False),
            ("shop.example", False),
            ("https://lea@shop.example", False),
            ("https://shop.example\\@evil.example", False),
            ("https://10.0.0.1", False),
            ("https://localhost.", False),
            ("javascript:alert(1)", False),
            ("https://", False),
        ],
    )
    def test_has_the_same_rules_as_a_return_url(self, url: str, is_taken: bool, settings: Settings) -> None:
        settings.LOCAL = False
        assert wrong(shop_url=url) == (set() if is_taken else {"shop_url"})

    def test_can_be_this_machine_only_in_local_mode(self, settings: Settings) -> None:
        settings.LOCAL = True
        assert wrong(shop_url="http://127.0.0.1:8001/") == set()
        settings.LOCAL = False
        assert wrong(shop_url="http://127.0.0.1:8001/") == {"shop_url"}


def test_the_error_for_a_refused_host_says_that_the_field_can_be_empty() -> None:
    form = SettingsForm(stage.FORM | {"return_hosts": "no host!"})
    assert str(form.errors["return_hosts"][0]).endswith(
        "such as shop.example, or leave it empty for any site."
    )


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("", []),
        ("Shop.example", ["shop.example"]),
        ("a.example, b.example\nA.example", ["a.example", "b.example"]),
    ],
)
def test_hosts_are_stored_once_in_lower_case(typed: str, kept: list[str]) -> None:
    form = SettingsForm(stage.FORM | {"return_hosts": typed})
    assert form.is_valid() and form.cleaned_data["return_hosts"] == kept
