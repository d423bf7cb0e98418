from contextlib import ExitStack

from config.lib.bulkhead import Bulkhead


def free_slots(one: Bulkhead) -> int:
    with ExitStack() as taken:
        count = 0
        while taken.enter_context(one.slot()).is_taken():
            count += 1
        return count
