from allauth.account import views as account
from django.urls import path
from django.views.decorators.http import require_POST

from portal.views import home

urlpatterns = [
    path("portal", home.home, name="portal_home"),
    path("accounts/login/", account.login, name="account_login"),
    path("accounts/logout/", require_POST(account.logout), name="account_logout"),
    path("accounts/inactive/", account.account_inactive, name="account_inactive"),
]
