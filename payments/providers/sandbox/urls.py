from django.urls import path

from payments.providers.sandbox import views

urlpatterns = [
    path("bank/card/<uuid:session_uuid>", views.show_card_form, name="bank_card"),
    path("bank/challenge/<uuid:key>", views.challenge, name="bank_challenge"),
]
