import re
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import translation
from jinja2 import TemplateSyntaxError

from checkout.models import Checkout
from hosted_page.models import SmsMessage
from tests.conftest import Api
from tests.hosted_page.browsers import PHONE, Payer, words
from tests.house import messages

FRENCH = {"accept-language": "fr-CA,fr;q=0.9,en;q=0.5"}
YOUR_NUMBER = {
    "de": "Ihre Handynummer",
    "es": "Tu número de móvil",
    "fr": "Votre numéro de mobile",
    "it": "Il tuo numero di cellulare",
    "nl": "Je mobiele nummer",
}
OWN_NAMES = {
    "English",
    "Deutsch",
    "Español",
    "Français",
    "Italiano",
    "Nederlands",
}
in_each = pytest.mark.parametrize("language", YOUR_NUMBER)
PROJECT = {
    "hosted_page/pages.py": '_("Said by code")',
    "templates/hosted_page/page.html": '{{ _("Said at once") }}{{ pgettext("a verb", "Text") }}',
    "templates/bank/card.html": "{% trans name=who.name %}<b>{{ name }}</b>\n  asks you{% endtrans %}",
}
QUOTED = re.compile("“([^”]+)”")
PLACEHOLDER = re.compile(r"%\(\w+\)s|\{\w*\}|</?\w+[^>]*>")


class TestTheCatalogue:
    def test_exists_for_each_language(self, settings: LazySettings) -> None:
        folders = {folder.name for folder in messages.LOCALES.iterdir()}
        assert folders == {code for code, _ in settings.LANGUAGES} - {"en-gb"} == set(YOUR_NUMBER)

    @in_each
    def test_contains_exactly_the_texts_of_the_pages(self, language: str) -> None:
        catalogue = messages.read(language)
        said = {(message.id, message.context) for message in messages.collect() if message.id}
        assert {(message.id, message.context) for message in catalogue if message.id} == said, "make messages"
        assert messages.missing(catalogue) == []

    @in_each
    def test_keeps_every_name_and_tag(self, language: str) -> None:
        for message in messages.read(language):
            said = message.id if isinstance(message.id, str) else message.id[-1]
            for form in messages.forms(message) if said else []:
                assert sorted(PLACEHOLDER.findall(form)) == sorted(PLACEHOLDER.findall(said)), said
                assert '"' not in PLACEHOLDER.sub("", form), "it may stand in an attribute"
                assert "'" not in PLACEHOLDER.sub("", form), "’ is the apostrophe of a page"

    @in_each
    def test_quotes_a_button_by_its_translated_label(self, language: str) -> None:
        said = {str(message.id): str(message.string) for message in messages.read(language)}
        quoting = {sentence: words_on for sentence in said for words_on in QUOTED.findall(sentence)}
        assert "All mine" in quoting.values()
        for sentence, words_on in quoting.items():
            assert re.search(rf"[„«‘]\s?{re.escape(said[words_on])}\s?[“»’]", said[sentence]), sentence

    @in_each
    def test_starts_with_its_glossary(self, language: str) -> None:
        words_used = messages.read(language).header_comment
        assert "Address: " in words_used and "mate = " in words_used and "held = " in words_used

    def test_is_collected_from_code_and_from_templates_of_both_kinds(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, text in PROJECT.items():
            (tmp_path / name).parent.mkdir(parents=True)
            (tmp_path / name).write_text(text)
        (tmp_path / "templates" / "404.html").write_text('{% translate "Nothing here" %}')
        monkeypatch.setattr(messages, "ROOT", tmp_path)
        found = {(message.id, message.context) for message in messages.collect() if message.id}
        assert found == {
            ("Said by code", None),
            ("Said at once", None),
            ("Text", "a verb"),
            ("<b>%(name)s</b> asks you", None),
            ("Nothing here", None),
        }

    def test_is_not_collected_if_a_template_has_a_syntax_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "templates" / "bank").mkdir(parents=True)
        (tmp_path / "templates" / "bank" / "card.html").write_text("{% if %}")
        monkeypatch.setattr(messages, "ROOT", tmp_path)
        with pytest.raises(TemplateSyntaxError):
            messages.collect()

    def test_check_finds_untranslated_messages(self) -> None:
        catalogue = messages.read("fr")
        catalogue.add("Not translated")
        assert messages.missing(catalogue) == ["Not translated"]


@pytest.mark.rule("page.language")
@pytest.mark.django_db
class TestThePage:
    def test_has_the_browsers_language(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        lea.client = Client(headers=FRENCH)
        page = lea.get()
        assert 'lang="fr"' in words(page) and "Votre numéro de mobile" in words(page)
        assert "90,00\N{NO-BREAK SPACE}£<" in words(page)
        assert page["Content-Language"] == "fr" and "Accept-Language" in page["Vary"]

    @pytest.mark.parametrize(
        ("accepted", "language"),
        [
            *[(code, code) for code in YOUR_NUMBER],
            *[("de-AT", "de"), ("de-CH,fr;q=0.8", "de"), ("es-MX", "es"), ("es-419", "es"), ("nl-BE", "nl")],
            *[("it-CH;q=0.7, pt", "it"), ("pt-BR,pt;q=0.9,es;q=0.5,en;q=0.4", "es"), ("FR", "fr")],
        ],
    )
    def test_has_the_nearest_supported_language(self, unpaid: Checkout, accepted: str, language: str) -> None:
        lea = Payer(unpaid)
        lea.client = Client(headers={"accept-language": accepted})
        page = lea.get()
        assert YOUR_NUMBER[language] in words(page) and f'<html lang="{language}">' in words(page)
        assert page["Content-Language"] == language

    @pytest.mark.parametrize("accepted", ["pt", "pl,pt", "", "en-US", "*", "x" * 600, "fr;q=zzz"])
    def test_is_in_english_for_other_languages(self, unpaid: Checkout, accepted: str) -> None:
        lea = Payer(unpaid)
        lea.client = Client(headers={"accept-language": accepted})
        assert "Your mobile number" in words(lea.get())

    @in_each
    def test_names_the_other_languages_in_their_own_words(self, unpaid: Checkout, language: str) -> None:
        lea = Payer(unpaid)
        lea.client = Client(headers={"accept-language": language})
        offered = re.findall(r'name="language" value="([a-z-]+)" lang="\1">(\w+)</button>', words(lea.get()))
        spoken = translation.get_language_info(language)["name_local"].capitalize()
        assert {name for _, name in offered} == OWN_NAMES - {spoken}

    def test_stays_with_the_language_that_was_chosen(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        here = f"/pay?id={unpaid.pk}"
        assert "Français</button>" in words(lea.get())
        chosen = lea.client.post("/pay/language", {"language": "fr", "next": here})
        assert (chosen.status_code, chosen["Location"]) == (303, here)
        page = words(lea.get())
        assert "Votre numéro de mobile" in page and "English</button>" in page
        back = lea.post("/phone", phone="12")
        assert "Saisissez un numéro de mobile" in words(back)
        lea.client.post("/pay/language", {"language": "en-gb", "next": here})
        assert "Your mobile number" in words(lea.get())

    @pytest.mark.parametrize(
        "fields",
        [
            {"language": "tlh", "next": "/pay"},
            {"language": "fr", "next": "https://evil.example/pay"},
            {"language": "fr", "next": "//evil.example/pay"},
            {"language": "fr", "next": "/pay\\evil"},
            {"language": "fr"},
            {},
        ],
    )
    def test_refuses_other_languages_and_redirect_targets(self, fields: dict[str, str]) -> None:
        refused = Client().post("/pay/language", fields)
        assert refused.status_code == 400 and "language" not in refused.cookies

    def test_of_the_card_is_in_the_chosen_language(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        lea.client = Client(headers=FRENCH)
        lea.sign_in()
        lea.post("/split", split="all")
        card = lea.client.get(lea.get("/card")["Location"])
        assert "Payer par carte" in words(card) and "Payer 90,00" in words(card)
        assert f'value="/pay/card?id={unpaid.pk}"' in words(card) and "English</button>" in words(card)
        refused = lea.client.post(card.request["PATH_INFO"], {"number": "1"})
        assert "Ce n’est pas une carte de test." in words(refused)

    def test_of_the_code_counts_tries_in_the_chosen_language(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        lea.client = Client(headers=FRENCH)
        lea.post("/phone", phone=PHONE)
        wrong = "000000" if lea.code() != "000000" else "111111"
        assert "Il vous reste 4 essais." in words(lea.post("/code", code=wrong))
        assert "est votre code pour Acme Tickets" in str(SmsMessage.objects.get().body)

    def test_of_an_unknown_order_is_in_the_browsers_language(self) -> None:
        assert "Il n’y a pas de commande à cette adresse" in words(Client(headers=FRENCH).get("/pay?id=x"))


@pytest.mark.django_db
def test_the_api_and_the_docs_speak_english(unpaid: Checkout, api: Api) -> None:
    assert "Votre numéro" in words(Client(headers=FRENCH).get(f"/pay?id={unpaid.pk}"))
    refused = api.get("checkouts/x", **FRENCH)
    assert refused.json()["error"]["message"].startswith("No such checkout")
    assert 'lang="en-gb"' in words(Client(headers=FRENCH).get("/api/docs"))
