"""Records each POST under /checkouts, and carries it out only once if it has an idempotency key.

A repeated POST with the same key gets the stored answer. The request log contains each answered POST except these
replays.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import structlog
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.http import HttpResponse
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from checkout.api import call_log, statements
from checkout.models import ApiCall, IdempotencyKey
from config.lib import crypto, failpoint, locks
from config.lib.api.view import ApiView
from payments.cause import caller_of

_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")
KEPT_FOR = timedelta(hours=24)
TAKEN_OVER_AFTER = timedelta(seconds=90)
# Refusals with these statuses are stored and replayed. After any other refusal the key is freed, because the
# same call could succeed later.
KEPT_REFUSALS = {402, 422}


class KeyRefused(Exception):
    """The Idempotency-Key does not allow this call."""


class InvalidIdempotencyKey(KeyRefused):
    """The header is not 1 to 255 printable ASCII characters (rule idempotency.key)."""

    def __init__(self) -> None:
        super().__init__("Must have 1 to 255 printable ASCII characters, without a space at either end.")


class IdempotencyKeyReused(KeyRefused):
    """The key was already used for a different request (rule idempotency.other)."""


class IdempotencyInProgress(KeyRefused):
    """The first call with this key has not been answered yet."""


class RecordedView(ApiView, ABC):
    """View that records its POST requests in the request log.

    Subclasses implement `carry_out`, which returns the answer. If `in_one_transaction` is set, the changes made by
    `carry_out` and the row of the request log are committed together. A crash then cannot leave only one of them. Rules
    idempotency.replay, idempotency.kept, idempotency.elsewhere.
    """

    in_one_transaction = False
    is_recorded = False  # whether `_post` writes the row for this request

    @abstractmethod
    def carry_out(self, request: Request, checkout_uuid: UUID | None) -> Response:
        """Carry out the request and return the answer. `config.errors` turns exceptions into responses."""

    def take_query(self, request: Request) -> None:
        """Read the query string, unless the request is a POST.

        `_post` reads the query string of a POST, so that a call with a wrong query string is also recorded.
        """
        if request.method != "POST":
            super().take_query(request)

    def post(self, request: Request, checkout_uuid: UUID | None = None) -> HttpResponse | Response:
        if self.in_one_transaction:
            with transaction.atomic(durable=True):
                return self._post(request, checkout_uuid)
        return self._post(request, checkout_uuid)

    def _post(self, request: Request, checkout_uuid: UUID | None) -> HttpResponse | Response:
        call = call_log.build_call(request, checkout_uuid)
        self.is_recorded = True
        try:
            super().take_query(request)
            claimed = _claim(request, checkout_uuid)
        except (KeyRefused, ValidationError) as refused:
            return _finish(call, self.handle_exception(refused), None)
        if isinstance(claimed, HttpResponse):
            return claimed
        answer = self._answer(call, request, claimed)
        call.ignored_fields = ", ".join(field.path for field in self.ignored)
        return _finish(call, answer, claimed)

    def _answer(self, call: ApiCall, request: Request, key: IdempotencyKey | None) -> Response:
        """Return the answer to the request. If the database fails, free the key and raise the error.

        If the call waits too long for a locked row, it is refused and recorded like any other refused call. A
        call that runs in one transaction raises the error instead.
        """
        try:
            return self.carry_out(request, call.checkout_uuid)
        except OperationalError as error:
            if locks.is_locked(error) and not self.in_one_transaction:
                return self._refusal(key, error)
            self._free(key)
            raise
        except Exception as error:
            return self._refusal(key, error)

    def _refusal(self, key: IdempotencyKey | None, error: Exception) -> Response:
        """Return the error response for an exception.

        An exception without a defined response is a bug. In this case, the key is freed and the exception is
        raised again.
        """
        try:
            return self.handle_exception(error)
        except Exception:
            self._free(key)
            raise

    def _free(self, key: IdempotencyKey | None) -> None:
        """Free the key. In a view that runs in one transaction, do not free it, because the rollback frees it."""
        if key is not None and not self.in_one_transaction:
            key.delete()


def _digests(request: Request) -> list[str]:
    """Return the digests that identify a request. The first digest is stored.

    A digest covers the method, the path and the body. If the body contains customer data, there is one digest for each
    of our secret keys, the current key first. A person who can read only the database therefore cannot find a phone
    number by trying all numbers.
    """
    plain = hashlib.sha256(f"{request.method} {request.path}\n".encode() + request.body).hexdigest()
    return crypto.keyed_digests("request", plain) if b'"customer"' in request.body else [plain]


def _claim(request: Request, checkout_uuid: UUID | None) -> IdempotencyKey | HttpResponse | None:
    """Store and return the idempotency key for this call, or return the stored answer. Raises KeyRefused.

    Returns None if the request has no key. Rules idempotency.in_flight, idempotency.at_once.
    """
    if (key := request.headers.get("Idempotency-Key")) is None:
        return None
    if not _KEY.fullmatch(key):
        raise InvalidIdempotencyKey
    digests = _digests(request)
    new_key = IdempotencyKey(
        merchant=caller_of(request).merchant,
        key=key,
        request_digest=digests[0],
        checkout_uuid=checkout_uuid,
        created_at=Now(),
    )
    return _write_or_replay(new_key, digests)


def _write_or_replay(new_key: IdempotencyKey, digests: list[str]) -> IdempotencyKey | HttpResponse:
    while not _try_write(new_key):
        existing = IdempotencyKey.objects.filter(merchant=new_key.merchant, key=new_key.key)
        stored = existing.annotate(age=Now() - F("created_at")).first()
        if stored is not None and not _free_if_stale(stored, stored.age, digests):
            return _replay(stored, digests)
    return new_key


def _try_write(new_key: IdempotencyKey) -> bool:
    """Insert the row of the key; return whether this call inserted it.

    If another transaction is inserting the same key, this function waits for it. Raises IdempotencyInProgress
    if the wait takes too long.
    """
    try:
        with transaction.atomic(savepoint=True):
            new_key.save(force_insert=True)
    except IntegrityError:
        return False
    except OperationalError:
        raise IdempotencyInProgress from None
    failpoint.reach("key_claimed")
    return True


def _free_if_stale(stored: IdempotencyKey, age: timedelta, digests: list[str]) -> bool:
    """Free a stored key if it has expired or if its process has died; return whether it was freed.

    If a call has no answer after TAKEN_OVER_AFTER, its process counts as dead. An identical request can then
    take over the key. Any other request can use the key only after it has expired.
    """
    if age < KEPT_FOR and (stored.status is not None or age < TAKEN_OVER_AFTER):
        return False
    if age < KEPT_FOR and stored.request_digest not in digests:
        return False
    stored.delete()
    return True


def _replay(stored: IdempotencyKey, digests: list[str]) -> HttpResponse:
    if stored.request_digest not in digests:
        raise IdempotencyKeyReused
    if stored.status is None:
        raise IdempotencyInProgress
    _bind_checkout(stored.checkout_uuid)
    response = HttpResponse(bytes(stored.body or b""), status=stored.status, content_type="application/json")
    if stored.status == 204:
        del response["Content-Type"]
    response["Idempotent-Replay"] = "true"
    return response


def _bind_checkout(checkout_uuid: UUID | None) -> None:
    """Add the checkout to the request's log lines and span, even if the URL does not contain it."""
    if checkout_uuid is not None:
        structlog.contextvars.bind_contextvars(checkout=str(checkout_uuid))


def _finish(call: ApiCall, response: Response, key: IdempotencyKey | None) -> Response:
    """Write the answered call to the request log. Store the answer under the key, or free the key.

    The key is freed if the same call could get a different answer later.
    """
    content: Any = response.data
    call_log.set_answer(call, response)
    if call.checkout_uuid is None and not call.error_code and isinstance(content, dict):
        call.checkout_uuid = UUID(content["data"]["checkout_uuid"])
        _bind_checkout(call.checkout_uuid)
    if key is None:
        call_log.write_call(call)
        return response
    failpoint.reach("answer_made")
    if _store_answer(key, call, orjson.dumps(content) if content is not None else b""):
        failpoint.reach("answer_kept")
    return response


def _store_answer(key: IdempotencyKey, call: ApiCall, body: bytes) -> bool:
    """Write the call to the request log. Store a final answer under its key, or free the key.

    Returns whether the answer is final. If another call has taken over the key in the meantime, the row of the
    key is not changed.
    """
    is_kept = 200 <= call.status < 300 or call.status in KEPT_REFUSALS
    statement = (
        statements.INSERT_API_CALL_AND_STORE_ANSWER if is_kept else statements.INSERT_API_CALL_AND_FREE_KEY
    )
    call_log.write_call(call, statement, key=key.pk, body=body)
    return is_kept
