from django.urls import path

from hosted_page.sandbox import views

urlpatterns = [
    path("checkouts/<api_uuid:checkout_uuid>/pay", views.Pay.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/split", views.Split.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/pledge-share", views.PledgeShare.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/pay-share", views.PayShare.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/opt-in", views.TickOptIn.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/decide-dispute", views.DecideDispute.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/advance", views.Advance.as_view()),
]
