"""Creates open holds for a merchant: `python -m tests.bench.sale.seeding <uuid> <count>`.

The program must run in the environment of the stage. If the bank is a separate process, the caller must copy the holds
into the bank's books.
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
