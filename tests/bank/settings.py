"""The service's settings, for processes whose bank is another process: the one at BANK_URL, or this one itself."""

from config.settings import *  # noqa: F403 - settings are all of the module's names
from config.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.bank.apps.BankConfig"]
ROOT_URLCONF = "tests.bank.urls"
