from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class PortalConfig(AppConfig):
    default = True
    name = "portal"


class AdminConfig(admin_apps.AdminConfig):
    """Django's admin, with our own site class."""

    default = False
    default_site = "portal.accounts.operators.Site"
