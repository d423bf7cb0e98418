#!/usr/bin/env python3
import os
import sys

from django.core.management import execute_from_command_line

from config.local import environment

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    environment.adopt()
    execute_from_command_line(sys.argv)
