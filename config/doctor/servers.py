"""Checks of the database, Redis and the mail server."""

import smtplib
from collections.abc import Iterator

from django.conf import settings
from django.core.mail import get_connection
from django.db import Error, connection, connections
from django.db.migrations.executor import MigrationExecutor
from redis import Redis
from redis.exceptions import RedisError

from config import startup_checks
from config.doctor import Finding
from config.lib import clock

REDIS_SECONDS = 3
CLOCK_SECONDS = 2  # allowed difference between this machine's clock and the database's, as in alerts.yml


def database() -> Iterator[Finding]:
    """Check that the database answers, is migrated and passes the startup checks. Also compare the clocks."""
    try:
        problems = [] if settings.LOCAL else startup_checks.problems_of_database()
        executor = MigrationExecutor(connection)
        missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        closed = startup_checks.reason_closed() if not missing else ""
        difference = abs(clock.seconds_ahead())
    except Error as error:
        yield Finding(
            f"The database does not answer ({type(error).__name__}). Check DATABASE_URL, the network and PostgreSQL."
        )
        return
    yield from map(Finding, problems)
    if missing:
        yield Finding(f"{missing} migrations have not run. Run manage.py migrate.")
    if closed:
        yield Finding(closed)
    if difference > CLOCK_SECONDS:
        yield Finding(
            f"This machine's clock differs from the database's by {difference:.0f} s. Start a time service on both."
        )


def replica() -> Iterator[Finding]:
    """Check that the replica answers, if there is one."""
    if "replica" not in settings.DATABASES:
        return
    try:
        connections["replica"].ensure_connection()
    except Error as error:
        yield Finding(
            f"The replica does not answer ({type(error).__name__}). Pages read the primary. "
            "Check DATABASE_REPLICA_URL.",
            is_warning=True,
        )


def redis() -> Iterator[Finding]:
    """Check that Redis answers."""
    try:
        with Redis.from_url(
            settings.REDIS_URL, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
        ) as client:
            client.ping()
    except RedisError as error:
        yield Finding(
            f"Redis does not answer ({type(error).__name__}). Check REDIS_URL, the network and Redis."
        )


def mail() -> Iterator[Finding]:
    """Check that the mail server accepts a connection, TLS and the login. No mail is sent."""
    if settings.LOCAL:
        return
    try:
        with get_connection(fail_silently=False):
            pass
    except smtplib.SMTPAuthenticationError:
        yield Finding("The mail server refuses the login. Check EMAIL_HOST_USER and EMAIL_HOST_PASSWORD.")
    except (OSError, smtplib.SMTPException) as error:
        yield Finding(
            f"The mail server {settings.EMAIL_HOST}:{settings.EMAIL_PORT} does not answer "
            f"({type(error).__name__}). Check EMAIL_HOST, EMAIL_PORT and EMAIL_USE_TLS."
        )
