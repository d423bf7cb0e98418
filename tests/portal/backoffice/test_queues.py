"""The work that waits for each pump, and when it is late."""

from portal.backoffice import ages, queues


def test_the_page_says_when_each_queue_is_late() -> None:
    said = {
        row[2]: queues.LATE_AFTER if row[2] == queues.USUAL_PATIENCE else ages.in_words(row[2])
        for row in queues.TABLE
    }
    assert all(f"after {words}" in queues.LATE_MEANS for words in said.values())
