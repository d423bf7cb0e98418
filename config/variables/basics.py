"""Variables for the environment, addresses, keys, database and Redis."""

from dataclasses import dataclass

from config.variables import value_types
from config.variables.value_types import whole
from config.variables.variable import variable


@dataclass(frozen=True)
class Basics:
    """The values of the variables that the service needs to start."""

    ENVIRONMENT: str = variable(
        value_types.one_of("local", "sandbox", "production"),
        "`local`, `sandbox` or `production`. It determines which values the other variables may have.",
        example="production",
    )
    BASE_URL: str = variable(
        value_types.url("http", "https", path="/?"),
        "The service's public https address. In `local`, a loopback address.",
        in_={"local": "http://127.0.0.1:8000"},
        example="https://checkout.example",
    )
    CHECKOUT_PAGE_URL: str = variable(
        value_types.url("http", "https", path="/pay"),
        "The address of the hosted page, if it is on another host. Its path is `/pay`.",
        default="",
        shown_default="`BASE_URL`/pay",
    )
    ALLOWED_HOSTS: list[str] = variable(
        value_types.HOSTS, "Further host names that requests may have, comma-separated.", default=[]
    )
    TRUSTED_PROXY_COUNT: int = variable(
        whole(0, 10),
        "The number of trusted proxies in front of the service. The service reads `X-Forwarded-Proto` and "
        "`X-Forwarded-For` only from them. If the number is 0 behind a proxy that terminates TLS, each page "
        "redirects to itself, and all callers share the limits of one address.",
        default=0,
        example="1",
    )
    SECRET_KEY: str = variable(
        value_types.TEXT,
        "50 random characters or more. It signs cookies, cursors, mailed links, and opt-in links, which are "
        "valid for 90 days.",
        is_secret=True,
    )
    SECRET_KEY_FALLBACKS: list[str] = variable(
        value_types.SECRETS,
        "Former values of `SECRET_KEY`, comma-separated. Their signatures are still accepted. Remove a key "
        "after 90 days.",
        default=[],
        is_secret=True,
    )
    LOOKUP_KEY: str = variable(
        value_types.TEXT,
        "The key of the digests with which the service looks up numbers, addresses and codes.",
        default="",
        shown_default="`SECRET_KEY`",
        is_secret=True,
    )
    LOOKUP_KEY_FALLBACKS: list[str] = variable(
        value_types.SECRETS,
        "Former values of `LOOKUP_KEY`, comma-separated. The service still finds rows whose digests were "
        "computed with them.",
        default=[],
        shown_default="`SECRET_KEY_FALLBACKS` if `LOOKUP_KEY` is not set",
        is_secret=True,
    )
    FIELD_KEYS: list[str] = variable(
        value_types.FIELD_KEYS,
        "Fernet keys, comma-separated, newest first. They encrypt signing secrets, pay links, opt-in "
        "addresses, personal events and second factors.",
        is_secret=True,
    )
    DATABASE_URL: dict[str, str] = variable(
        value_types.DATABASE,
        "The address of PostgreSQL 16 or newer. In production, a database on another machine needs "
        "`sslmode=verify-full`.",
        example="postgresql://checkout:password@database.example:5432/checkout?sslmode=verify-full",
        is_secret=True,
    )
    DATABASE_OWNER_URL: dict[str, str] = variable(
        value_types.DATABASE,
        "Only for `migrate`: the role that owns the tables, if the role of `DATABASE_URL` does not. `migrate` "
        "creates the role of `DATABASE_URL` if it does not exist, and grants it its rights.",
        default={},
        is_secret=True,
    )
    DATABASE_REPLICA_URL: dict[str, str] = variable(
        value_types.DATABASE,
        "A [replica](#a-replica) of `DATABASE_URL`, for pages that can be five seconds old.",
        default={},
        is_secret=True,
    )
    DATABASE_POOL: int = variable(
        whole(0, 500),
        "The largest number of database connections per process. 0: each thread opens a connection when it "
        "needs one.",
        default=16,
        example="16",
    )
    DATABASE_PREPARE: bool = variable(
        value_types.FLAG,
        "Whether PostgreSQL keeps the plans of statements with a connection, which halves its CPU. Set it to "
        "true, except behind a PgBouncer older than 1.22.",
        default=False,
        example="true",
    )
    DATABASE_RESTORED: str = variable(
        value_types.TEXT,
        "A word that you change after each restore of a storage snapshot, because the service cannot detect a "
        "restored snapshot. The service is then closed until the database is repaired.",
        default="",
    )
    REDIS_URL: str = variable(
        value_types.REDIS,
        "The address of Redis or Valkey: `redis://…`, `rediss://…?ssl_cert_reqs=required` or `unix://…`. It "
        "holds no important data.",
        example="rediss://redis.example:6379/0?ssl_cert_reqs=required",
        is_secret=True,
    )
