"""Prevents errors because of very large numbers in JSON from PostgreSQL."""

import orjson
from psycopg.types.json import set_json_loads


def parse_large_numbers_as_floats() -> None:
    """Make psycopg read very large numbers in JSON as floats, for example 1e30 in a merchant's custom data.

    PostgreSQL writes such a number with all its digits. By default, psycopg would read it as an integer that
    is too large to be written as JSON again (rule create.custom_data).
    """
    set_json_loads(orjson.loads)
