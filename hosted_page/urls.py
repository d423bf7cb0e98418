from collections.abc import Callable, Mapping

from django.http import HttpResponse
from django.urls import URLPattern, path

from hosted_page import language, views
from hosted_page.group import bill_views, group_page, mate_views, pledge_views
from hosted_page.logo import views as logo
from hosted_page.opt_in import link
from hosted_page.page_security import check_page, reports
from hosted_page.sms import receipts, stopped_numbers
from hosted_page.steps import card, prefilled_code, remembered_browser, sign_in, sign_in_extension, split

View = Callable[..., HttpResponse]
# The steps of every payment. The route `pay/known/end` is named `pay_known_end`.
STEPS: dict[str, View] = {
    "phone": sign_in.submit_phone,
    "code": sign_in.submit_code,
    "resend": sign_in.resend_code,
    "known": remembered_browser.continue_as_remembered,
    "known/end": remembered_browser.forget_number,
    "stay": sign_in_extension.extend_sign_in,
    "leave": views.leave,
    "card": card.show_card_step,
    "paid": card.pay_with_token,
    "confirmed": card.finish_challenge,
    "another-card": card.allow_another_card,
}
OF_LEAD: dict[str, View] = {
    "prefilled": prefilled_code.text_code,
    "split": split.split,
    "opt-in": views.save_opt_in,
    "receipt": views.text_receipt,
    "bill": bill_views.refresh_bill,
    "add-mate": bill_views.add_mate,
    "cancel-share": bill_views.cancel_share,
    "rename-share": bill_views.rename,
    "ask-again": bill_views.ask_again,
    "text-share": bill_views.send_link,
    "remind": bill_views.remind,
    "cancel": views.cancel,
    "language": language.choose,
    "check": check_page.show_check_page,
}
OF_MATE: dict[str, View] = {
    "opt-in": mate_views.save_opt_in,
    "receipt": mate_views.text_receipt,
    "decline": mate_views.decline,
    "reconsider": mate_views.reconsider,
    "withdraw": pledge_views.withdraw,
}


def _build_routes(prefix: str, name: str, pages: Mapping[str, View]) -> list[URLPattern]:
    """Return the routes for pages below a path prefix. The names of the routes begin with `name`."""
    return [
        path(f"{prefix}/{page}", view, name=f"{name}_{page.replace('/', '_').replace('-', '_')}")
        for page, view in pages.items()
    ]


urlpatterns = [
    path("pay", views.show_order, name="pay"),
    *_build_routes("pay", "pay", STEPS | OF_LEAD),
    path("pay/stop/<str:token>", stopped_numbers.show_stop_page, name="sms_stop"),
    path("pay/offers/<str:token>", link.show_box, name="opt_in_link"),
    path("pay/share/<str:token>", mate_views.show_share, name="share"),
    path("pay/share/<str:token>/qr.svg", mate_views.show_qr_code, name="share_qr"),
    *_build_routes("pay/share/<str:token>", "share", STEPS | OF_MATE),
    path("pay/g/<str:token>", group_page.show_group, name="group"),
    path("pay/g/<str:token>/take", group_page.take_share, name="group_take"),
    path("pay/g/<str:token>/qr", group_page.show_qr_page, name="group_qr"),
    path("pay/g/<str:token>/qr.svg", group_page.show_qr_code, name="group_qr_svg"),
    path("pay/g/<str:token>/<int:position>", mate_views.show_share, name="group_share"),
    *_build_routes(
        "pay/g/<str:token>/<int:position>", "group_share", STEPS | OF_MATE | {"release": mate_views.release}
    ),
    path("csp-reports", reports.receive_report, name="csp_reports"),
    path("sms/twilio/<uuid:message_uuid>", receipts.receive_from_twilio, name="twilio_receipt"),
    path("brand/<uuid:merchant_uuid>-<int:version>.css", views.serve_brand_css, name="brand_css"),
    path("brand/<slug:colour>.css", views.serve_colour_css, name="colour_css"),
    path("brand/<uuid:merchant_uuid>-<int:version>.png", logo.show_mark, name="brand_logo"),
    path("brand/<uuid:merchant_uuid>-<int:version>-card.png", logo.show_chat_card, name="brand_card"),
]
