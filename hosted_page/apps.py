from django.apps import AppConfig


class HostedPageConfig(AppConfig):
    name = "hosted_page"
    verbose_name = "Hosted page"
