from django.urls import path

from portal.views import home

urlpatterns = [path("portal", home.home, name="portal_home")]
