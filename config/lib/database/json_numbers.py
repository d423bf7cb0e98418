"""Numbers in JSON that PostgreSQL returns."""

import orjson
from psycopg.types.json import set_json_loads


def parse_large_numbers_as_floats() -> None:
    """Make psycopg read very large numbers in JSON as floats, such as 1e30 in a merchant's own data.

    PostgreSQL writes such a number with all its digits. psycopg's default reader would make it an integer
    that is too large to be written as JSON again (rule create.custom_data).
    """
    set_json_loads(orjson.loads)
