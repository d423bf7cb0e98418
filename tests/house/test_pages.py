from tests.house import pages


def test_the_table_of_pages_in_the_docs_is_current() -> None:
    assert pages.PAGE.read_text() == pages.document(), "run make pages"
