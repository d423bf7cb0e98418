"""Idempotency keys and recorded calls of the POST endpoints under /checkouts.

A POST under a key is carried out once. Each call that is answered, except a replay, leaves a row.
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
from rest_framework.request import Request
from rest_framework.response import Response

from checkout.api import call_log, statements
from checkout.models import ApiCall, IdempotencyKey
from config.lib import crypto, failpoint, locks
from config.lib.api.view import ApiView
from payments.cause import caller_of

_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")
KEPT = timedelta(hours=24)
TAKEN_OVER_AFTER = timedelta(seconds=90)
KEPT_REFUSALS = {402, 422}  # any other refusal can become a success later, so its key is freed


class KeyRefused(Exception):
    """The Idempotency-Key does not allow this call."""


class InvalidIdempotencyKey(KeyRefused):
    """The header is not 1 to 255 printable ASCII characters (rule idempotency.key)."""

    def __init__(self) -> None:
        super().__init__("Must have 1 to 255 printable ASCII characters, without a space at either end.")


class IdempotencyKeyReused(KeyRefused):
    """The key was used for another request (rule idempotency.other)."""


class IdempotencyInProgress(KeyRefused):
    """The first call under this key has not been answered yet."""


class RecordedView(ApiView, ABC):
    """View whose POST is recorded. Subclasses implement `act`, which returns the answer.

    With `in_one_transaction`, the record shares the transaction of `act`, so that a crash leaves both or
    neither. Rules idempotency.replay, idempotency.kept.
    """

    in_one_transaction = False
    is_recorded = False  # whether `_post` writes this request's row

    @abstractmethod
    def act(self, request: Request, checkout_uuid: UUID | None) -> Response:
        """Carry out the request and return the answer. config.errors maps domain errors."""

    def take_query(self, request: Request) -> None:
        """Leave the query of a POST to `_answer`, so that a call with a wrong query is recorded."""
        if request.method != "POST":
            super().take_query(request)

    def post(self, request: Request, checkout_uuid: UUID | None = None) -> HttpResponse | Response:
        if self.in_one_transaction:
            with transaction.atomic(durable=True):
                return self._post(request, checkout_uuid)
        return self._post(request, checkout_uuid)

    def _post(self, request: Request, checkout_uuid: UUID | None) -> HttpResponse | Response:
        call = call_log.begun(request, checkout_uuid)
        self.is_recorded = True
        try:
            claimed = _claim(request, checkout_uuid)
        except KeyRefused as refused:
            return _finish(call, self.handle_exception(refused), None)
        if isinstance(claimed, HttpResponse):
            return claimed
        return _finish(call, self._answer(call, request, claimed), claimed)

    def _answer(self, call: ApiCall, request: Request, key: IdempotencyKey | None) -> Response:
        """Return the answer to the request. If the database fails, free the key and raise the error.

        A row that stays locked is not a failure of the database. Unless the call runs in one transaction, it
        is refused and recorded like any other refused call.
        """
        try:
            super().take_query(request)
            return self.act(request, call.checkout_uuid)
        except OperationalError as error:
            if locks.is_locked(error) and not self.in_one_transaction:
                return self._refusal(key, error)
            self._free(key)
            raise
        except Exception as error:
            return self._refusal(key, error)

    def _refusal(self, key: IdempotencyKey | None, error: Exception) -> Response:
        """Return the answer to an error. If no answer is defined for it, free the key and raise it.

        Such an error is a bug.
        """
        try:
            return self.handle_exception(error)
        except Exception:
            self._free(key)
            raise

    def _free(self, key: IdempotencyKey | None) -> None:
        """Free the key at once. In one transaction, the rollback frees it."""
        if key is not None and not self.in_one_transaction:
            key.delete()


def _digests(request: Request) -> list[str]:
    """Return the digests that identify a request. The first one is to be stored.

    They cover method, path and body. A body can contain a phone number, and a reader of the database must not
    find it by trying all numbers. Therefore the digests of such a body need our key.
    """
    plain = hashlib.sha256(f"{request.method} {request.path}\n".encode() + request.body).hexdigest()
    return crypto.keyed_digests("request", plain) if b'"customer"' in request.body else [plain]


def _claim(request: Request, checkout_uuid: UUID | None) -> IdempotencyKey | HttpResponse | None:
    """Write the row that owns the key, or return the stored answer. Raises KeyRefused.

    Returns None if the request has no key. Rules idempotency.in_flight, idempotency.at_once.
    """
    if (key := request.headers.get("Idempotency-Key")) is None:
        return None
    if not _KEY.fullmatch(key):
        raise InvalidIdempotencyKey
    digests = _digests(request)
    wanted = IdempotencyKey(
        merchant=caller_of(request).merchant,
        key=key,
        request_digest=digests[0],
        checkout_uuid=checkout_uuid,
        created_at=Now(),
    )
    return _written(wanted, digests)


def _written(wanted: IdempotencyKey, digests: list[str]) -> IdempotencyKey | HttpResponse:
    while not _is_written(wanted):
        same = IdempotencyKey.objects.filter(merchant=wanted.merchant, key=wanted.key)
        stored = same.annotate(age=Now() - F("created_at")).first()
        if stored is not None and not _release(stored, stored.age, digests):
            return _replay(stored, digests)
    return wanted


def _is_written(wanted: IdempotencyKey) -> bool:
    """Return whether this call owns the key now.

    It waits for a transaction that is writing the same key.
    """
    try:
        with transaction.atomic(savepoint=True):
            wanted.save(force_insert=True)
    except IntegrityError:
        return False
    except OperationalError:
        raise IdempotencyInProgress from None
    failpoint.reach("key_claimed")
    return True


def _release(stored: IdempotencyKey, age: timedelta, digests: list[str]) -> bool:
    """Free a key that has expired, or whose process died before it answered; return whether it was freed."""
    if age < KEPT and (stored.status is not None or age < TAKEN_OVER_AFTER):
        return False
    if age < KEPT and stored.request_digest not in digests:
        return False
    stored.delete()
    return True


def _replay(stored: IdempotencyKey, digests: list[str]) -> HttpResponse:
    if stored.request_digest not in digests:
        raise IdempotencyKeyReused
    if stored.status is None:
        raise IdempotencyInProgress
    _name_checkout(stored.checkout_uuid)
    response = HttpResponse(bytes(stored.body or b""), status=stored.status, content_type="application/json")
    if stored.status == 204:
        del response["Content-Type"]
    response["Idempotent-Replay"] = "true"
    return response


def _name_checkout(checkout_uuid: UUID | None) -> None:
    """Add the checkout to the request's log lines and span, even if the address does not contain it."""
    if checkout_uuid is not None:
        structlog.contextvars.bind_contextvars(checkout=str(checkout_uuid))


def _finish(call: ApiCall, response: Response, key: IdempotencyKey | None) -> Response:
    """Write the call with its answer. Store the answer under the key, or free the key.

    The key is freed if the answer can still change.
    """
    content: Any = response.data
    call_log.answered(call, response)
    if call.checkout_uuid is None and not call.error_code and isinstance(content, dict):
        call.checkout_uuid = UUID(content["data"]["checkout_uuid"])
        _name_checkout(call.checkout_uuid)
    if key is None:
        call_log.write(call)
        return response
    failpoint.reach("answer_made")
    if _keep(key, call, orjson.dumps(content) if content is not None else b""):
        failpoint.reach("answer_kept")
    return response


def _keep(key: IdempotencyKey, call: ApiCall, body: bytes) -> bool:
    """Write the call; store a final answer under its key, or free the key.

    Returns whether the answer is final. If another call has taken the key over in the meantime, no answer is
    stored and no key is freed.
    """
    is_kept = 200 <= call.status < 300 or call.status in KEPT_REFUSALS
    statement = (
        statements.INSERT_API_CALL_AND_STORE_ANSWER if is_kept else statements.INSERT_API_CALL_AND_FREE_KEY
    )
    call_log.write(call, statement, key=key.pk, body=body)
    return is_kept
