"""Checks that a migration's SQL does not disturb a running service.

During an upgrade, the previous release runs on the new schema, and no table may be locked for long.
"""

import re
from collections.abc import Iterator, Sequence

_CREATED = re.compile(r'CREATE TABLE "?(\w+)"?', re.IGNORECASE)
_DROPPED = re.compile(r'DROP INDEX CONCURRENTLY IF EXISTS "?(\w+)"?', re.IGNORECASE)
_INDEXED = re.compile(r'CREATE (?:UNIQUE )?INDEX CONCURRENTLY "?(\w+)"?', re.IGNORECASE)
_ON = re.compile(
    r'(?:ALTER TABLE(?: ONLY)?|(?:INDEX|CONCURRENTLY)\b.*? ON|UPDATE|DELETE FROM|LOCK TABLE|DROP TABLE)\s+"?(\w+)"?',
    re.IGNORECASE | re.DOTALL,
)
VOLATILE = r"(?:gen_random_uuid|uuid\w*|random|clock_timestamp|nextval)\s*\("
# Patterns of forbidden statements. Each has the reason, and what to write instead.
OFFENCES: tuple[tuple[str, str], ...] = (
    (r"CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY)", "builds an index under a lock: CREATE INDEX CONCURRENTLY"),
    (r"DROP INDEX (?!CONCURRENTLY)", "drops an index under a lock: DROP INDEX CONCURRENTLY"),
    (r"REINDEX (?!.*CONCURRENTLY)", "rebuilds an index under a lock: REINDEX CONCURRENTLY"),
    (
        r"ADD CONSTRAINT .*(?:CHECK|FOREIGN KEY)(?!.*NOT VALID)",
        "reads the whole table under a lock: NOT VALID first, then VALIDATE",
    ),
    (
        r"ADD (?:CONSTRAINT \S+ )?(?:UNIQUE|PRIMARY KEY|EXCLUDE)(?!.*USING INDEX)",
        "builds an index under a lock: build it CONCURRENTLY, then ADD … USING INDEX",
    ),
    (r"ALTER COLUMN \S+ (?:SET DATA )?TYPE", "may write the whole table anew: add a column, copy in batches"),
    (
        r"SET NOT NULL",
        "reads the whole table under a lock: a CHECK … NOT VALID, validated later, says the same",
    ),
    (
        r"ADD COLUMN (?!.*\bDEFAULT\b).*NOT NULL",
        "fails on rows that there are, and on the release before: give it a db_default",
    ),
    (
        r"ADD COLUMN .*DEFAULT .*" + VOLATILE,
        "writes the whole table anew: a default that is the same for all rows",
    ),
    (r"ADD COLUMN .*GENERATED ALWAYS", "writes the whole table anew: a column of its own, filled in batches"),
    (
        r"DROP DEFAULT",
        "leaves a column that the release before cannot insert without: keep the default (db_default)",
    ),
    (
        r"\bRENAME (?:COLUMN|TO|CONSTRAINT)",
        "takes away a name that the release before uses: add, copy, and drop in the next release",
    ),
    (
        r"DROP COLUMN|DROP TABLE",
        "takes away what the release before reads: only once no release that runs reads it",
    ),
    (
        r"^\s*(?:UPDATE|DELETE)\b",
        "changes rows in the migration's transaction: a command that does it in batches",
    ),
    (r"\bSET (?:UN)?LOGGED", "writes the whole table anew under a lock"),
    (r"\b(?:LOCK TABLE|VACUUM FULL|CLUSTER)\b", "locks the table"),
)
AGAIN = "stays as an index that is not valid where it breaks off: DROP INDEX CONCURRENTLY IF EXISTS before it"


def offences(statements: Sequence[str], *, allowed: Sequence[str] = ()) -> Iterator[str]:
    """Yield a message for each forbidden statement in a migration.

    A statement is allowed if it contains one of the texts in `allowed`. A statement on a table that the same
    migration has created is allowed too, because no process uses this table yet.
    """
    made = {name for statement in statements for name in _CREATED.findall(statement)}
    dropped = set[str]()
    for statement in statements:
        words = " ".join(statement.split())
        dropped |= set(_DROPPED.findall(words))
        named = _ON.search(words)
        if (named and named[1] in made) or any(part in words for part in allowed):
            continue
        if not set(_INDEXED.findall(words)) <= dropped:
            yield f"{words[:120]} … {AGAIN}."
        for pattern, remedy in OFFENCES:
            if re.search(pattern, words, re.IGNORECASE):
                yield f"{words[:120]} … {remedy}."
