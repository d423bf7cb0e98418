#!/usr/bin/env python3
import os
import sys

from django.core.management import execute_from_command_line

from config import version
from config.local import environment
from config.variables import startup

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    environment.adopt_variables()
    if sys.argv[1:] == ["version"]:  # Django prints its own version
        print(version.running_version())
    else:
        startup.load_settings()
        execute_from_command_line(sys.argv)
