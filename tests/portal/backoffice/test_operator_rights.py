"""The form for operators' rights offers only rights that an admin page checks, each as a labelled tick box."""

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.test import Client, RequestFactory

from portal.backoffice import operator_rights
from portal.models import User
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.rights")]
ADD_GROUP, ADD_USER = "/admin/auth/group/add/", "/admin/portal/user/add/"
LABEL = re.compile(r"<span>([^<]*)</span></label>")
SUPERUSERS_ONLY = {"auth.group", "portal.membership"}  # only superusers change the rows of these tables


def all_rights() -> list[Permission]:
    return list(Permission.objects.select_related("content_type"))


def offered_names() -> set[str]:
    keys = {key for _, rights in operator_rights.group_rights(all_rights()) for key, _ in rights}
    return {f"{row.content_type.app_label}.{row.codename}" for row in all_rights() if row.pk in keys}


@pytest.mark.parametrize("address", [ADD_GROUP, ADD_USER])
def test_are_offered_in_words_and_once_each(operator: Client, address: str) -> None:
    labels = LABEL.findall(operator.get(address).content.decode())
    assert {"Cancel held orders", "Checkouts", "Sandbox bank: broken keys", "Payer sign-ins"} <= set(labels)
    assert len(labels) == len(set(labels)) == len(offered_names())
    assert not [label for label in labels if "|" in label or "Can " in label]


def test_have_an_effect_if_they_are_offered(operator: Client) -> None:
    assert set(operator_rights.ACTIONS) <= offered_names()
    assert not {"payments.add_payment", "bank.delete_brokenkey", "portal.delete_user"} & offered_names()
    for model in admin.site._registry:
        assert model._meta.label_lower.replace(".", ".view_") in offered_names()


def test_are_all_offered_if_a_page_changes_rows() -> None:
    """If an admin page lets an operator add, change or delete rows, the form offers the right to do this."""
    request = RequestFactory().get("/admin/")
    request.user = User.objects.create_user("helper@operators.example", people.PASSWORD, is_staff=True)
    request.user.user_permissions.set(all_rights())
    for model, model_admin in admin.site._registry.items():
        for verb, is_allowed in model_admin.get_model_perms(request).items():
            names = {f"{model._meta.app_label}.{verb}_{model._meta.model_name}"}
            if model._meta.label_lower == "payments.switch":
                names.add("payments.change_switch")  # operators need this right to add a stop
            assert not is_allowed or names & offered_names(), names
            assert not (is_allowed and verb != "view") or model._meta.label_lower not in SUPERUSERS_ONLY


def test_without_effect_are_kept_while_the_others_do_not_change(operator: Client) -> None:
    group = Group.objects.create(name="Helpers")
    used, unused = (Permission.objects.get(codename=name) for name in ("view_checkout", "add_payment"))
    group.permissions.set([used, unused])
    address = f"/admin/auth/group/{group.pk}/change/"
    form = {"name": "Support", "initial-name": "Helpers", "permissions": [used.pk]}
    page = operator.get(address).content.decode()
    shown = re.findall(r'name="initial-permissions" value="(\d+)"', page)
    assert shown == [str(used.pk)] and page.count(" checked") == 1
    operator.post(address, form | {"initial-permissions": shown})
    group.refresh_from_db()
    assert group.name == "Support" and set(group.permissions.all()) == {used, unused}
    operator.post(address, {"name": "Support", "initial-name": "Support", "initial-permissions": shown})
    assert not group.permissions.exists()


def test_without_effect_cannot_be_given(operator: Client) -> None:
    used, unused = (Permission.objects.get(codename=name) for name in ("view_checkout", "add_payment"))
    operator.post(ADD_GROUP, {"name": "Helpers", "permissions": [used.pk, unused.pk]})
    assert list(Group.objects.get().permissions.all()) == [used]


def test_are_a_list_in_words_for_operators_who_cannot_change_them(client: Client) -> None:
    helper = User.objects.create_user("helper@operators.example", people.PASSWORD, is_staff=True)
    helper.user_permissions.set(all_rights())
    people.operate(client, helper)
    page = client.get(f"/admin/portal/user/{helper.pk}/change/").content.decode()
    assert "Cancel held orders, Resolve operations" in page and " | " not in page
    assert "Can do everything" in page and "Designates" not in page


def test_are_folded_unless_the_person_is_an_operator(operator: Client) -> None:
    """A merchant's person has none of them, so that the long list would only hide the fields below it."""
    person = User.objects.create_user("lea@acme.example")
    address = f"/admin/portal/user/{person.pk}/change/"
    page = operator.get(address).content.decode()
    assert "of-operators" in page and page.index("Last login") < page.index(
        "<details><summary>"
    ) < page.index("Cancel held orders")
    assert ">No groups yet.<" in page and operator_rights.GROUPS_HINT not in page
    Group.objects.create(name="Helpers")
    assert operator_rights.GROUPS_HINT in operator.get(address).content.decode()
    for flag in ("is_staff", "is_superuser"):
        User.objects.filter(pk=person.pk).update(is_staff=False, is_superuser=False)
        User.objects.filter(pk=person.pk).update(**{flag: True})
        assert "of-operators" not in operator.get(address).content.decode()
    assert "of-operators" in operator.get(ADD_USER).content.decode()


def test_have_the_names_of_the_lists(operator: Client) -> None:
    labels = set(LABEL.findall(operator.get(ADD_USER).content.decode()))
    overview = operator.get("/admin/").content.decode()
    for name, address in (("Memberships", "portal/membership"), ("Changes", "checkout/change")):
        assert name in labels and f'/admin/{address}/">{name}</a>' in overview
        assert f"<h1>{name}</h1>" in operator.get(f"/admin/{address}/").content.decode()
    assert {
        "Prefilled customer data",
        "Texts per day",
        "Share claims",
        "Card attempts",
        "Opted-out numbers",
    } <= labels
