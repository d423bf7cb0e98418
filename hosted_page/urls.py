from django.urls import path

from hosted_page import card, views

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
    path("pay/cancel", views.cancel, name="pay_cancel"),
    path("brand/<uuid:merchant_uuid>-<int:version>.css", views.brand_css, name="brand_css"),
]
