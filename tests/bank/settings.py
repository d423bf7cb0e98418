"""The service's settings for processes whose bank is a separate process, and for the bank's own process.

The bank is at BANK_URL. Without BANK_URL, this process is the bank.
"""

from config.settings import *  # noqa: F403 - settings are all of the module's names
from config.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.bank.apps.BankConfig"]
ROOT_URLCONF = "tests.bank.urls"
