from django.urls import path

from hosted_page.opt_in import api

urlpatterns = [path("checkouts/<api_uuid:checkout_uuid>/opt-in-link", api.OptInLink.as_view())]
