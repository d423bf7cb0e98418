from django.urls import path

from hosted_page import language, views
from hosted_page.group import mate, table
from hosted_page.opt_in import link
from hosted_page.sms import receipts, stops
from hosted_page.steps import card, known_browser, sign_in, split

urlpatterns = [
    path("pay", views.page, name="pay"),
    path("pay/phone", sign_in.phone, name="pay_phone"),
    path("pay/code", sign_in.code, name="pay_code"),
    path("pay/resend", sign_in.resend, name="pay_resend"),
    path("pay/known", known_browser.go_on, name="pay_known"),
    path("pay/known/end", known_browser.end, name="pay_known_end"),
    path("pay/again", views.again, name="pay_again"),
    path("pay/split", split.split, name="pay_split"),
    path("pay/card", card.card, name="pay_card"),
    path("pay/paid", card.paid, name="pay_paid"),
    path("pay/confirmed", card.confirmed, name="pay_confirmed"),
    path("pay/another-card", card.another, name="pay_another_card"),
    path("pay/opt-in", views.opt_in, name="pay_opt_in"),
    path("pay/cancel-share", views.cancel_share, name="pay_cancel_share"),
    path("pay/text-share", views.send_link, name="pay_send_link"),  # open pages post there during an upgrade
    path("pay/cancel", views.cancel, name="pay_cancel"),
    path("pay/language", language.choose, name="pay_language"),
    path("pay/stop/<str:token>", stops.page, name="sms_stop"),
    path("pay/offers/<str:token>", link.page, name="opt_in_link"),
    path("pay/share/<str:token>", mate.page, name="share"),
    path("pay/share/<str:token>/qr.svg", mate.qr, name="share_qr"),
    path("pay/share/<str:token>/phone", sign_in.phone, name="share_phone"),
    path("pay/share/<str:token>/code", sign_in.code, name="share_code"),
    path("pay/share/<str:token>/resend", sign_in.resend, name="share_resend"),
    path("pay/share/<str:token>/known", known_browser.go_on, name="share_known"),
    path("pay/share/<str:token>/known/end", known_browser.end, name="share_known_end"),
    path("pay/share/<str:token>/card", card.card, name="share_card"),
    path("pay/share/<str:token>/paid", card.paid, name="share_paid"),
    path("pay/share/<str:token>/confirmed", card.confirmed, name="share_confirmed"),
    path("pay/share/<str:token>/another-card", card.another, name="share_another_card"),
    path("pay/share/<str:token>/opt-in", mate.opt_in, name="share_opt_in"),
    path("pay/share/<str:token>/decline", mate.decline, name="share_decline"),
    path("pay/g/<str:token>", table.page, name="group"),
    path("pay/g/<str:token>/take", table.take, name="group_take"),
    path("pay/g/<str:token>/qr", table.qr_page, name="group_qr"),
    path("pay/g/<str:token>/qr.svg", table.qr, name="group_qr_svg"),
    path("pay/g/<str:token>/<int:position>", mate.page, name="group_share"),
    path("pay/g/<str:token>/<int:position>/phone", sign_in.phone, name="group_share_phone"),
    path("pay/g/<str:token>/<int:position>/code", sign_in.code, name="group_share_code"),
    path("pay/g/<str:token>/<int:position>/resend", sign_in.resend, name="group_share_resend"),
    path("pay/g/<str:token>/<int:position>/card", card.card, name="group_share_card"),
    path("pay/g/<str:token>/<int:position>/paid", card.paid, name="group_share_paid"),
    path("pay/g/<str:token>/<int:position>/confirmed", card.confirmed, name="group_share_confirmed"),
    path("pay/g/<str:token>/<int:position>/another-card", card.another, name="group_share_another_card"),
    path("pay/g/<str:token>/<int:position>/opt-in", mate.opt_in, name="group_share_opt_in"),
    path("pay/g/<str:token>/<int:position>/decline", mate.decline, name="group_share_decline"),
    path("pay/g/<str:token>/<int:position>/release", mate.release, name="group_share_release"),
    path("sms/twilio/<uuid:message_uuid>", receipts.take_from_twilio, name="twilio_receipt"),
    path("brand/<uuid:merchant_uuid>-<int:version>.css", views.brand_css, name="brand_css"),
]
