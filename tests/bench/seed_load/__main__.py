"""python -m tests.bench.seed_load [--checkouts 1000000] [--merchant UUID]: fills a database.

The database is that of DATABASE_URL, or that of a `make run` in progress. Never use production's.
"""

import argparse
import os
import sys
from uuid import UUID

import django

from config.local import environment


def main() -> None:
    """Read the arguments and fill the database. If this is impossible, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(prog="tests.bench.seed_load")
    parser.add_argument("--checkouts", type=int, default=1_000_000)
    parser.add_argument("--merchant", type=UUID, metavar="UUID", help="whose; without it, the oldest's")
    asked = parser.parse_args()
    environment.adopt_variables()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from tests.bench.seed_load import loading  # imported here, because its models need loaded apps

    try:
        loading.load(asked.checkouts, merchants=[asked.merchant] if asked.merchant else (), say=print)
    except loading.CannotLoad as refused:
        sys.exit(str(refused))


if __name__ == "__main__":
    main()
