"""Rules for all portal pages: a page with errors has status 422, and a secret is shown only once."""

import pytest
from django import forms
from django.http import HttpRequest
from django.test import RequestFactory

from payments.models import Merchant
from portal import pages
from portal.models import Role
from tests.portal import stage


class Form(forms.Form):
    name = forms.CharField(max_length=3, error_messages={"required": "Give it a name."})
    note = forms.CharField(required=False)


@pytest.mark.django_db
@pytest.mark.parametrize(("errors", "status"), [({}, 200), ({"email": "Write one."}, 422)])
def test_a_page_with_errors_is_a_422(
    acme: Merchant, rf: RequestFactory, errors: dict[str, str], status: int
) -> None:
    owner = stage.person(acme, Role.OWNER)
    shown = pages.show_page(rf.get("/"), owner, "portal/_badge.html", {"errors": errors})
    assert shown.status_code == status


def test_errors_are_the_first_of_each_wrong_field() -> None:
    assert pages.first_errors(Form({"name": "", "note": "x"})) == {"name": "Give it a name."}
    assert pages.first_errors(Form({"name": "Box"})) == {}


def test_a_secret_is_stored_encrypted_and_shown_once_to_its_merchant(acme: Merchant, rival: Merchant) -> None:
    request = HttpRequest()
    request.session = {}  # type: ignore[assignment]  # a dictionary has all that the code uses
    owner, elsewhere = stage.person(acme, Role.OWNER), stage.person(rival, Role.OWNER)
    pages.store_secret(request, owner, "key", "sk_secret")
    assert "sk_secret" not in str(request.session)
    assert pages.take_secret(request, elsewhere, "key") == ""
    assert [pages.take_secret(request, owner, "key") for _ in range(2)] == ["sk_secret", ""]
