from django.urls import path

from hosted_page import sandbox_api

urlpatterns = [
    path("checkouts/<api_uuid:checkout_uuid>/pay", sandbox_api.Pay.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/pay-share", sandbox_api.PayShare.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/opt-in", sandbox_api.TickOptIn.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/advance", sandbox_api.Advance.as_view()),
]
