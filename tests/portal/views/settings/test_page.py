import html
import re
from datetime import timedelta

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from checkout.models import Checkout
from hosted_page.logo import storage
from hosted_page.models import OptInText
from hosted_page.opt_in import consent
from payments.models import Merchant
from portal.mail import outbox as mail_outbox
from portal.models import AuditEntry, Membership, Role
from portal.views.settings import page as page_view
from tests import factories
from tests.conftest import Api
from tests.hosted_page.logo import files
from tests.hosted_page.logo.test_storage import show_logo
from tests.portal import people, stage
from tests.portal.stage import save

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.ADMIN)


class TestSettings:
    def test_are_written_and_audited_by_name(self, client: Client, acme: Merchant) -> None:
        save(client, name="Acme Shows", brand_colour="#A61C59", support_url="https://acme.example/help")
        acme.refresh_from_db()
        assert (acme.name, acme.brand_colour, acme.brand_version) == ("Acme Shows", "#A61C59", 2)
        assert set(AuditEntry.objects.get().facts["fields"]) == {"name", "brand_colour", "support_url"}

    def test_a_new_name_requires_a_fresh_proof_and_is_mailed_to_the_owners(self, acme: Merchant) -> None:
        stage.person(acme, Role.OWNER, "lea@acme.example")
        tired = stage.browser(stage.person(acme, Role.ADMIN), is_fresh=False)
        asked = save(tired, name="Your bank")
        assert asked.status_code == 302 and "reauthenticate" in asked["Location"]
        acme.refresh_from_db()
        assert acme.name == "Acme Tickets" and not AuditEntry.objects.exists()
        assert save(tired, country="FR")["Location"] == "/portal/settings", "the others want none"
        mail_outbox.send_due()
        assert mail.outbox == []
        save(stage.browser(stage.person(acme, Role.ADMIN, "amy@acme.example")), name="Acme Shows")
        mail_outbox.send_due()
        (told,) = mail.outbox
        assert told.to == ["lea@acme.example"] and "amy@acme.example" in told.body
        assert told.subject == "TEST · Acme Shows: the name that customers see changed"

    @pytest.mark.rule("portal.sensitive_settings")
    @pytest.mark.parametrize(
        ("field", "words"),
        [
            ("shop_url", "the shop’s address"),
            ("support_url", "the address of the help page"),
            ("terms_url", "the address of the terms"),
            ("privacy_url", "the address of the privacy page"),
            ("return_hosts", "the hosts that customers may return to"),
        ],
    )
    def test_an_address_to_which_customers_are_sent_requires_a_fresh_proof_and_is_mailed(
        self, acme: Merchant, field: str, words: str
    ) -> None:
        stage.person(acme, Role.OWNER, "lea@acme.example")
        admin = stage.person(acme, Role.ADMIN)
        value = "other.example" if field == "return_hosts" else "https://other.example"
        assert "reauthenticate" in save(stage.browser(admin, is_fresh=False), **{field: value})["Location"]
        assert not AuditEntry.objects.exists()
        save(stage.browser(admin), **{field: value})
        assert AuditEntry.objects.get().facts["fields"] == [field]
        mail_outbox.send_due()
        assert mail.outbox[0].subject == f"TEST · Acme Tickets: {words} changed"

    def test_call_the_payer_a_customer(self, client: Client) -> None:
        words = client.get("/portal/settings").content.decode().lower()
        assert "customers see" in words and "payer" not in words

    def test_explain_the_time_zone(self, client: Client) -> None:
        assert 'aria-describedby="zone-hint"' in client.get("/portal/settings").content.decode()
        refused = save(client, time_zone="Europe/Atlantis").content.decode()
        assert 'aria-describedby="zone-hint zone-error"' in refused

    def test_without_a_change_write_nothing(self, client: Client, acme: Merchant) -> None:
        save(client)
        acme.refresh_from_db()
        assert acme.brand_version == 1 and not AuditEntry.objects.exists()

    @pytest.mark.parametrize(
        "changes",
        [
            {"name": ""},
            {"name": "x" * 121},
            {"brand_colour": "red"},
            {"brand_colour": "#12345"},
            {"brand_colour": "#A61C59\n"},
            {"country": "XX"},
            {"time_zone": "Europe/Atlantis"},
            {"time_zone": "../../etc/passwd"},
            {"support_url": "http://acme.example"},
            {"terms_url": "javascript:alert(1)"},
            {"privacy_url": "nonsense"},
            {"shop_url": "http://acme.example"},
            {"shop_url": "https://lea@acme.example"},
            {"shop_url": "https://10.0.0.1/"},
            {"shop_url": "javascript:alert(1)"},
            {"shop_url": "https://acme.example/\x00"},
            {"shop_url": f"https://acme.example/{'x' * 200}"},
            {"return_hosts": "https://shop.example/"},
            {"return_hosts": "shop.example\nbad host!"},
            {"return_hosts": " ".join(f"h{number}.example" for number in range(21))},
            {"unpaid_minutes": "14"},
            {"unpaid_minutes": "1441"},
            {"unpaid_minutes": "soon"},
        ],
    )
    def test_refuse_invalid_values_and_change_nothing(
        self, client: Client, acme: Merchant, changes: dict[str, str]
    ) -> None:
        before = Merchant.objects.filter(pk=acme.pk).values().get()
        page = save(client, **changes)
        assert page.status_code == 422 and "field-error" in page.content.decode()
        assert Merchant.objects.filter(pk=acme.pk).values().get() == before


class TestForm:
    WORDS = "Acme may write to me by e-mail and text. I can stop any time."

    def test_is_a_single_form_that_ends_with_its_button(self, client: Client, acme: Merchant) -> None:
        show_logo(acme)
        page = client.get("/portal/settings").content.decode()
        main = page.partition('<main class="main"')[2].partition("</main>")[0]
        assert (
            "unless an order names its own time zone" in main
            and "whose order has no link back to your shop" in main
        )
        form, rest = main.partition("</form")[::2]
        names = re.findall(r'name="(\w+)"', form)
        assert names[2:5] == ["name", "brand_colour", "logo"] and {"opt_in_enabled", "text"} < set(names)
        assert re.findall(r"<button[^>]*>([^<]+)<", form) == ["Remove the logo", "Save settings"]
        assert re.findall(r"<button[^>]*>([^<]+)<", rest) == ["Preview"]
        assert names.index("text") < len(names) and form.index('name="text"') < form.index("Save settings")

    def test_saves_settings_logo_and_words_at_once(self, client: Client, acme: Merchant) -> None:
        sent = {"logo": SimpleUploadedFile("a.png", files.logo()), "text": self.WORDS, "language": "en-gb"}
        assert save(client, country="FR", **sent)["Location"] == "/portal/settings"
        acme.refresh_from_db()
        assert acme.country == "FR" and storage.logo_of(acme) and consent.wording(acme).text == self.WORDS
        actions = set(AuditEntry.objects.values_list("action", flat=True))
        assert actions == {"settings_changed", "logo_changed", "opt_in_wording_written"}
        page = client.get("/portal/settings").content.decode()
        assert (
            "Your logo is shown from now on." in page
            and "of the opt-in wording is shown from now on." in page
        )

    def test_that_is_refused_saves_nothing_and_asks_for_the_file_again(
        self, client: Client, acme: Merchant
    ) -> None:
        sent = {"logo": SimpleUploadedFile("a.png", files.logo()), "text": self.WORDS, "language": "en-gb"}
        page = save(client, **sent, return_hosts="no host!")
        words = page.content.decode()
        assert page.status_code == 422 and "Choose the file again" in words and self.WORDS in words
        acme.refresh_from_db()
        assert storage.logo_of(acme) is None and not AuditEntry.objects.exists()

    def test_that_waits_for_a_proof_has_already_saved_its_logo(self, acme: Merchant) -> None:
        known = people.join(acme, Role.ADMIN)
        tired = stage.browser(Membership.objects.get(user=known), is_fresh=False)
        asked = save(tired, name="Your bank", logo=SimpleUploadedFile("a.png", files.logo()))
        assert "reauthenticate" in asked["Location"]
        acme.refresh_from_db()
        assert acme.name == "Acme Tickets" and storage.logo_of(acme)
        proven = tired.post(asked["Location"], {"password": people.PASSWORD})
        assert proven["Location"] == "/portal/settings"
        acme.refresh_from_db()
        assert acme.name == "Your bank" and storage.logo_of(acme)


class TestARefusal:
    def test_links_to_each_field_by_its_label(self, client: Client) -> None:
        wrong = {"name": "", "brand_colour": "red", "country": "", "time_zone": "Mars", "unpaid_minutes": "1"}
        wrong |= dict.fromkeys(("shop_url", "support_url", "terms_url", "privacy_url"), "ftp://x")
        wrong |= {"return_hosts": "no host!", "text": "Short", "language": "en-gb"}
        page = html.unescape(save(client, **wrong).content.decode())
        labels = dict(re.findall(r'<label class="field-label" for="(\w+)">([^<]+)<', page))
        led = re.findall(r'<a class="link" href="#(\w+)">([^<]+)<', page)
        assert dict(led).keys() == wrong.keys() - {"language"}
        assert all(labels[name] == label for name, label in led)
        assert labels == page_view.LABELS


class TestReadOnlyAccess:
    @pytest.mark.parametrize("role", [Role.DEVELOPER, Role.SUPPORT, Role.VIEWER])
    def test_shows_the_settings_as_text(self, acme: Merchant, role: Role) -> None:
        Merchant.objects.filter(pk=acme.pk).update(shop_url="https://acme.example/", brand_colour="#A61C59")
        page = stage.browser(stage.person(acme, role)).get("/portal/settings").content.decode()
        main = page.partition('<main class="main"')[2].partition("</main>")[0]
        for field in ("<form", "<input", "<textarea", "<select", "<button"):
            assert field not in main
        for value in ("Acme Tickets", "#A61C59", "https://acme.example/", "Europe/London", "What they see"):
            assert value in main
        assert "Opt-in wording" not in main, "there is none yet"


@pytest.mark.rule("create.return_hosts")
class TestReturnHosts:
    def test_refuse_other_hosts_at_creation(self, client: Client, api: Api) -> None:
        save(client, return_hosts="Shop.example\nbasket.example:8443")
        assert api.post("checkouts", factories.order()).status_code == 201
        ported = factories.order(cancel_url="https://basket.example:8443/back")
        assert api.post("checkouts", ported).status_code == 201
        for other in (
            "https://evil.example/",
            "https://shop.example.evil.example/",
            "https://sub.shop.example/",
        ):
            refused = api.post("checkouts", factories.order(return_url=other))
            assert refused.status_code == 422 and refused.json()["error"]["param"] == "return_url", other
        assert Checkout.objects.count() == 2

    def test_accept_any_host_if_empty(self, api: Api) -> None:
        assert api.post("checkouts", factories.order(return_url="https://any.example/")).status_code == 201


@pytest.mark.rule("expiry.hour")
class TestUnpaidLifetime:
    def test_is_the_merchants_own(self, client: Client, acme: Merchant) -> None:
        save(client, unpaid_minutes="20")
        acme.refresh_from_db()
        checkout = factories.checkout(acme)
        assert checkout.payable_until - checkout.created_at == timedelta(minutes=20)

    def test_defaults_to_that_of_the_service(self, acme: Merchant) -> None:
        checkout = factories.checkout(acme)
        assert checkout.payable_until - checkout.created_at == timedelta(minutes=60)


class TestOptInWording:
    WORDS = "Acme may write to me by e-mail and text. I can stop any time."

    def test_is_stored_as_a_new_version_and_shown_from_then_on(self, client: Client, acme: Merchant) -> None:
        first = consent.wording(acme)
        save(client, text=f"  {self.WORDS} ", language="en-gb")
        shown = consent.wording(acme)
        assert (shown.text, shown.version) == (self.WORDS, first.version + 1)
        assert OptInText.objects.get(pk=first.pk).text == first.text
        page = client.get("/portal/settings").content.decode()
        assert page.index(self.WORDS) < page.index("In use since") < page.index("New wording")
        assert page.count("In use since") == 1 and page.index("Earlier wordings") < page.index(first.text)

    @pytest.mark.parametrize(
        "form", [{"text": "Short", "language": "en-gb"}, {"text": WORDS, "language": "pt"}, {"text": WORDS}]
    )
    def test_refuses_an_invalid_wording(self, client: Client, form: dict[str, str]) -> None:
        assert save(client, **form).status_code == 422
        assert not OptInText.objects.exclude(is_ours=True).exists()

    def test_by_default_is_replaced_once_the_shop_has_another_name(
        self, client: Client, acme: Merchant
    ) -> None:
        former = consent.wording(acme)
        save(client, name="Zenith")
        acme.refresh_from_db()
        page = html.unescape(client.get("/portal/settings").content.decode())
        assert "use since" not in page and page.index("Earlier wordings") < page.index(former.text)
        shown = consent.wording(acme)
        page = html.unescape(client.get("/portal/settings").content.decode())
        assert "Zenith" in shown.text and page.index("in use since") < page.index("Earlier wordings")

    def test_is_shown_once(self, client: Client, acme: Merchant) -> None:
        shown = consent.wording(acme).text
        assert html.unescape(client.get("/portal/settings").content.decode()).count(shown) == 1
