"""The team page, and the invitations that it sends."""

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from payments.models import Merchant
from portal import access, team
from portal.mail import outbox
from portal.models import AuditEntry, Invitation, Membership, OutboundEmail, Role, User
from portal.views.team import ACTION_TEXTS
from tests.portal import stage

pytestmark = pytest.mark.django_db
PASSWORD = "a-long-enough-passphrase"


@pytest.fixture
def client(owner: Membership) -> Client:
    return stage.browser(owner)


def link_mailed_to(address: str) -> str:
    outbox.send_due()
    (body,) = [str(sent.body) for sent in mail.outbox if sent.to == [address]]
    found = re.search(r"https?://[^/]+(/join/\S+)", body)
    assert found
    return found[1]


class TestInvitation:
    def test_adds_a_new_person_to_the_team(self, client: Client, acme: Merchant) -> None:
        client.post("/portal/team/invite", {"email": "Dora@Acme.example", "role": "developer"})
        link = link_mailed_to("Dora@Acme.example")
        guest = Client()
        assert "Choose a password" in guest.get(link).content.decode()
        assert guest.post(link, {"password": PASSWORD})["Location"] == "/portal"
        dora = Membership.objects.get(user__email__iexact="dora@acme.example")
        assert (dora.role, dora.merchant) == ("developer", acme)
        assert guest.get("/portal").status_code == 200
        assert Client().get(link).status_code == 404, "it is good once"
        assert AuditEntry.objects.filter(action="invitation_accepted", user=dora.user).exists()
        outbox.send_due()
        invited, joined = ("Dora@Acme.example invited", "dora@acme.example joined the team")
        subjects = [sent.subject.partition(": ")[2] for sent in mail.outbox]
        assert invited in subjects and joined in subjects, subjects
        mailed = str(mail.outbox[subjects.index(invited)].body)
        assert " invited Dora@Acme.example as a developer.\n\nWhen: " in mailed
        assert "If you do not recognise this change, change your password now" in mailed
        body = str(mail.outbox[-1].body)
        assert body.startswith("dora@acme.example joined the team as a developer.\n")
        assert "If no one in your team invited this person, remove them" in body

    def test_does_not_store_its_link(self, client: Client) -> None:
        client.post("/portal/team/invite", {"email": "dora@acme.example", "role": "viewer"})
        link = link_mailed_to("dora@acme.example")
        kept = [*OutboundEmail.objects.values(), *Invitation.objects.values(), *AuditEntry.objects.values()]
        assert link.rpartition("/")[2] not in str(kept)

    @pytest.mark.rule("sms.invitation")
    def test_does_not_contain_a_link_from_the_merchants_name(self, client: Client) -> None:
        Merchant.objects.update(name="Your bank 0800 123: log in at evil.co/x or lose your money")
        client.post("/portal/team/invite", {"email": "dora@acme.example", "role": "viewer"})
        outbox.send_due()
        (sent,) = [sent for sent in mail.outbox if sent.to == ["dora@acme.example"]]
        assert sent.subject == "TEST · Join Your bank log in at evilcox or"
        assert " invites you to join Your bank log in at evilcox or as a viewer." in sent.body

    def test_of_a_person_with_an_account_asks_them_to_log_in(self, client: Client, rival: Merchant) -> None:
        dora = stage.person(rival, Role.OWNER, "dora@acme.example")
        client.post("/portal/team/invite", {"email": "dora@acme.example", "role": "admin"})
        link = link_mailed_to("dora@acme.example")
        assert Client().get(link)["Location"].startswith("/accounts/login/?next=")
        stranger = stage.browser(stage.person(rival, Role.VIEWER, "else@rival.example"))
        assert (
            stranger.post(link).status_code == 200 and Membership.objects.filter(user=dora.user).count() == 1
        )
        theirs = stage.browser(dora)
        assert theirs.post(link)["Location"] == "/portal"
        assert "Acme Tickets" in theirs.get("/portal").content.decode(), "they act for the new merchant"

    def test_weak_password_is_refused_in_words(self, client: Client) -> None:
        client.post("/portal/team/invite", {"email": "dora@acme.example", "role": "viewer"})
        link = link_mailed_to("dora@acme.example")
        for password in ("", "short", "password1234", "dora@acme.example"):
            page = Client().post(link, {"password": password})
            assert page.status_code == 422 and "field-error" in page.content.decode()
        assert not User.objects.filter(email="dora@acme.example").exists()

    def test_ends_when_it_expires_or_is_withdrawn(self, client: Client) -> None:
        client.post("/portal/team/invite", {"email": "dora@acme.example", "role": "viewer"})
        link = link_mailed_to("dora@acme.example")
        Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert Client().get(link).status_code == 404
        Invitation.objects.update(expires_at=timezone.now() + timedelta(days=1))
        client.post(f"/portal/team/invitations/{Invitation.objects.get().pk}/end")
        assert Client().post(link, {"password": PASSWORD}).status_code == 404

    @pytest.mark.parametrize(
        ("email", "words"),
        [
            ("", "Write an e-mail address"),
            ("nobody", "Write an e-mail address"),
            ("OWNER@{merchant}.example", "in the team already"),
        ],
    )
    def test_refuses_what_it_cannot_send(
        self, client: Client, acme: Merchant, email: str, words: str
    ) -> None:
        typed = email.format(merchant=acme.pk.hex[-8:])
        page = client.post("/portal/team/invite", {"email": typed, "role": "viewer"})
        assert page.status_code == 422 and words in page.content.decode()
        assert not Invitation.objects.exists() and not OutboundEmail.objects.exists()

    @pytest.mark.parametrize(
        ("becomes", "still_invited"),
        [
            (Role.OWNER, {"owner", "viewer"}),
            (Role.ADMIN, {"viewer"}),
            (Role.DEVELOPER, set()),
            (None, set()),
        ],
    )
    def test_ends_when_its_sender_loses_the_right_to_send_it(
        self, acme: Merchant, owner: Membership, becomes: Role | None, still_invited: set[str]
    ) -> None:
        dora = stage.person(acme, Role.OWNER, "dora@acme.example")
        for role in (Role.OWNER, Role.VIEWER):
            team.invite(dora, f"{role.value}@acme.example", role)
        team.invite(owner, "else@acme.example", Role.OWNER)
        team.change_role(owner, dora.pk, becomes) if becomes else team.remove(owner, dora.pk)
        still_open = Invitation.objects.filter(ended_at=None).values_list("email", flat=True)
        assert set(still_open) == {f"{role}@acme.example" for role in still_invited} | {"else@acme.example"}

    def test_is_not_sent_twice_to_one_address(self, client: Client) -> None:
        for _ in range(2):
            page = client.post("/portal/team/invite", {"email": "dora@acme.example", "role": "viewer"})
        assert page.status_code == 422 and Invitation.objects.count() == 1

    def test_withdrawn_while_it_is_open_does_not_cause_an_error(
        self, client: Client, rival: Merchant
    ) -> None:
        dora = stage.person(rival, Role.OWNER, "dora@acme.example")
        client.post("/portal/team/invite", {"email": "dora@acme.example", "role": "admin"})
        link = link_mailed_to("dora@acme.example")
        theirs = stage.browser(dora)
        assert theirs.get(link).status_code == 200
        client.post(f"/portal/team/invitations/{Invitation.objects.get().pk}/end")
        assert theirs.post(link).status_code == 404
        assert Membership.objects.filter(user=dora.user).count() == 1


def test_only_an_owner_can_appoint_an_owner(client: Client) -> None:
    page = client.get("/portal/team").content.decode()
    row = page.partition("Make a person an owner")[2].partition("</tr>")[0]
    assert re.findall(r">(yes|no)<", row) == ["yes", *["no"] * (len(Role) - 1)]


def test_only_a_person_who_can_change_the_team_reads_how_to_replace_the_owner(
    client: Client, acme: Merchant
) -> None:
    assert "You are the only owner." in client.get("/portal/team").content.decode()
    for role, is_told in ((Role.ADMIN, True), (Role.SUPPORT, False)):
        page = stage.browser(stage.person(acme, role)).get("/portal/team").content.decode()
        assert ("make someone else an owner first" in " ".join(page.split())) == is_told


def test_every_right_has_a_description(client: Client) -> None:
    assert list(ACTION_TEXTS) == list(access.ROLES_BY_ACTION)
    shown = client.get("/portal/team").content.decode()
    assert [words for words in ACTION_TEXTS.values() if f">{words}</th>" not in shown] == []
