"""Makes a merchant's open holds: `python -m tests.bench.sale.seeding <uuid> <count>`, in the stage's environment.

Where the bank is another process, its books do not know of them yet.
"""

import sys

import django


def main(merchant_uuid: str, count: str) -> None:
    django.setup()
    from payments.models import Merchant
    from tests.bench.api import holds

    holds.make(Merchant.objects.get(pk=merchant_uuid), int(count))


if __name__ == "__main__":
    main(*sys.argv[1:])
