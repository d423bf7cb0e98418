"""A person sends a portal form after the session has ended. After the login, the person is on a portal page."""

import pytest
from django.test import Client

from payments.models import Merchant
from portal.models import Role
from tests.portal import stage

pytestmark = pytest.mark.django_db
# The address and fields of each form, and the page that the person sees after the login.
FORMS: dict[str, tuple[str, dict[str, str], str]] = {
    "refund": ("/portal/checkouts/{order}/refund", {"step": "check"}, "/portal/checkouts/{order}/refund"),
    "cancel": ("/portal/checkouts/{order}/cancel", {"reason": ""}, "/portal/checkouts/{order}"),
    "send again": ("/portal/deliveries/resend", {"which": "parked"}, "/portal/deliveries"),
    "run a case": ("/portal/checklist/run", {"case": "twice"}, "/portal/checklist"),
    "note": ("/portal/checkouts/{order}/notes", {"text": "They called."}, "/portal/checkouts/{order}"),
}


@pytest.mark.rule("portal.sessions")
@pytest.mark.parametrize("name", FORMS)
def test_a_form_after_the_end_of_the_session_leads_back_to_its_page(acme: Merchant, name: str) -> None:
    order = stage.captured(acme)
    address, fields, page = FORMS[name]
    login = Client().post(address.format(order=order.pk), fields)["Location"]
    assert login.startswith("/accounts/login/?next=")
    again = stage.browser(stage.person(acme, Role.OWNER)).get(login.partition("next=")[2], follow=True)
    assert again.status_code == 200 and again.request["PATH_INFO"] == page.format(order=order.pk)
    assert again.content.decode().count("<main") == 1
