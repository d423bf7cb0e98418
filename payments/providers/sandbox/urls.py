from django.urls import path

from payments.providers.sandbox import views

urlpatterns = [path("bank/card/<uuid:session_uuid>", views.card, name="bank_card")]
