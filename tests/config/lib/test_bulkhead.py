"""A bulkhead has a fixed number of slots and a short queue, and two callers never share a slot."""

import threading
import time

import pytest

from config.lib.bulkhead import Bulkhead, Busy
from tests.config.lib.slots import free_slots


class TestBulkhead:
    def test_is_full_while_all_slots_are_taken_and_free_afterwards(self) -> None:
        one = Bulkhead(2)
        with one.slot() as first, one.slot() as second:
            first.take()
            second.take()
            with one.slot() as third, pytest.raises(Busy):
                third.take()
            assert free_slots(one) == 0
        assert free_slots(one) == 2

    def test_a_slot_is_taken_once_even_if_requested_twice(self) -> None:
        one = Bulkhead(3)
        with one.slot() as slot:
            assert slot.is_taken() and slot.is_taken()
            slot.take()
            slot.wait()
            assert free_slots(one) == 2
        assert free_slots(one) == 3

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_a_slot_is_released_after_any_exception(self, error: type[BaseException]) -> None:
        one = Bulkhead(1)
        for _ in range(2):
            with pytest.raises(error), one.slot() as slot:
                slot.take()
                raise error
        assert free_slots(one) == 1

    def test_a_slot_is_given_to_one_thread_only(self) -> None:
        one, got = Bulkhead(4), list[bool]()
        start, enough = threading.Barrier(20), threading.Barrier(20)

        def ask() -> None:
            with one.slot() as slot:
                start.wait(5)
                got.append(slot.is_taken())
                enough.wait(5)

        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        assert sum(got) == 4 and len(got) == 20
        assert free_slots(one) == 4

    def test_waiters_get_slots_in_order_of_arrival(self, db: None) -> None:
        one, served = Bulkhead(1, queue=3), list[int]()

        def wait(number: int) -> None:
            assert one.wait(10)
            served.append(number)
            one.leave()

        threads = [threading.Thread(target=wait, args=(number,)) for number in range(3)]
        with one.slot() as first:
            first.take()
            for place, thread in enumerate(threads, start=1):
                thread.start()
                while len(one._waiting) < place:
                    time.sleep(0.001)
        for thread in threads:
            thread.join(10)
        assert served == [0, 1, 2] and free_slots(one) == 1

    def test_a_waiter_that_times_out_leaves_no_queue_entry(self, db: None) -> None:
        one = Bulkhead(1, queue=1)
        with one.slot() as first:
            first.take()
            assert not one.wait(0.01) and not one.wait(0.01)
            assert not one._waiting
        assert free_slots(one) == 1

    def test_a_full_queue_refuses_at_once(self, db: None) -> None:
        one = Bulkhead(1, queue=1)
        with one.slot() as first:
            first.take()
            waiting = threading.Thread(target=one.wait, args=(10,))
            waiting.start()
            while not one._waiting:
                time.sleep(0.001)
            assert not one.wait(10), "refused at once, or the test takes ten seconds and hands over no slot"
        waiting.join(10)
        one.leave()
        assert free_slots(one) == 1
