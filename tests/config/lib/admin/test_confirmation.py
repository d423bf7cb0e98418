"""The admin asks an operator to confirm an action before the action runs."""

import pytest
from django.contrib import admin
from django.http import HttpRequest
from django.test import RequestFactory

from config.lib.admin import confirmation
from payments.models import Merchant
from portal.backoffice import cases
from portal.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.proof")]


@pytest.fixture
def request_of() -> HttpRequest:
    request = RequestFactory().get("/admin/")
    request.user = User.objects.create_superuser("operator@example.com")
    return request


@pytest.fixture
def row(acme: Merchant) -> Merchant:
    found: Merchant = admin.site.get_model_admin(Merchant).get_queryset(RequestFactory().get("/")).get()
    return found


class TestQuestion:
    def test_has_a_title_and_a_required_note_field(self, request_of: HttpRequest, row: Merchant) -> None:
        asked = confirmation.question_about(cases.admin_of(row), request_of, "suspend", row)
        assert asked is not None and asked.question.title == "Stop Acme Tickets?" and asked.details == ""
        assert asked.field.label == "Reason" and asked.field.field.required

    @pytest.mark.parametrize("action", ["resume", "nothing"])
    def test_is_none_if_the_action_is_not_offered(
        self, request_of: HttpRequest, row: Merchant, action: str
    ) -> None:
        assert confirmation.question_about(cases.admin_of(row), request_of, action, row) is None

    def test_is_none_for_users_without_permission(self, request_of: HttpRequest, row: Merchant) -> None:
        request_of.user = User.objects.create_user("looker@example.com", is_staff=True)
        assert confirmation.question_about(cases.admin_of(row), request_of, "suspend", row) is None
