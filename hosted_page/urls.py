from django.urls import path

from hosted_page import card, language, mate, opt_in_link, views

urlpatterns = [
    path("pay", views.page, name="pay"),
    path("pay/phone", views.phone, name="pay_phone"),
    path("pay/code", views.code, name="pay_code"),
    path("pay/resend", views.resend, name="pay_resend"),
    path("pay/again", views.again, name="pay_again"),
    path("pay/split", views.split, name="pay_split"),
    path("pay/card", card.card, name="pay_card"),
    path("pay/paid", card.paid, name="pay_paid"),
    path("pay/confirmed", card.confirmed, name="pay_confirmed"),
    path("pay/another-card", card.another, name="pay_another_card"),
    path("pay/opt-in", views.opt_in, name="pay_opt_in"),
    path("pay/cancel-share", views.cancel_share, name="pay_cancel_share"),
    path("pay/text-share", views.text_share, name="pay_text_share"),
    path("pay/cancel", views.cancel, name="pay_cancel"),
    path("pay/language", language.choose, name="pay_language"),
    path("pay/offers/<str:token>", opt_in_link.page, name="opt_in_link"),
    path("pay/share/<str:token>", mate.page, name="share"),
    path("pay/share/<str:token>/qr.svg", mate.qr, name="share_qr"),
    path("pay/share/<str:token>/phone", mate.phone, name="share_phone"),
    path("pay/share/<str:token>/code", mate.code, name="share_code"),
    path("pay/share/<str:token>/resend", mate.resend, name="share_resend"),
    path("pay/share/<str:token>/card", mate.pay, name="share_card"),
    path("pay/share/<str:token>/paid", mate.paid, name="share_paid"),
    path("pay/share/<str:token>/confirmed", mate.confirmed, name="share_confirmed"),
    path("pay/share/<str:token>/another-card", mate.another, name="share_another_card"),
    path("pay/share/<str:token>/opt-in", mate.opt_in, name="share_opt_in"),
    path("pay/share/<str:token>/decline", mate.decline, name="share_decline"),
    path("brand/<uuid:merchant_uuid>-<int:version>.css", views.brand_css, name="brand_css"),
]
