from django.urls import path

from hosted_page import opt_in_api

urlpatterns = [path("checkouts/<api_uuid:checkout_uuid>/opt-in-link", opt_in_api.OptInLink.as_view())]
