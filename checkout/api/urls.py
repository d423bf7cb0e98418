from django.urls import path

from checkout.api import views

urlpatterns = [
    path("checkouts", views.Checkouts.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>", views.OneCheckout.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/capture", views.Capture.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/cancel", views.Cancel.as_view()),
    path("checkouts/<api_uuid:checkout_uuid>/refund", views.Refund.as_view()),
]
