"""Idempotency keys: each POST under /checkouts leaves an ApiCall row, and is carried out once under a key."""

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

from checkout.models import ApiCall
from config.lib import failpoint
from config.lib.view import ApiView
from config.lib.web import request_id
from payments.cause import caller_of

_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")
KEPT = timedelta(hours=24)
TAKEN_OVER_AFTER = timedelta(seconds=90)
KEPT_REFUSALS = {402, 422}  # any other refusal may become a success later, so that its key is freed


class KeyRefused(Exception):
    """The Idempotency-Key does not allow this call."""


class InvalidIdempotencyKey(KeyRefused):
    """The header is not 1 to 255 printable ASCII characters (rule idempotency.key)."""


class IdempotencyKeyReused(KeyRefused):
    """The key has served another request (rule idempotency.other)."""


class IdempotencyInProgress(KeyRefused):
    """The first call under this key has not been answered yet."""


class RecordedView(ApiView, ABC):
    """A view whose POST is recorded. Subclasses write `act`, which returns the answer.

    With `in_one_transaction` the record shares the act's transaction: a crash leaves both or neither.
    Rules idempotency.replay, idempotency.kept.
    """

    in_one_transaction = False

    @abstractmethod
    def act(self, request: Request, checkout_uuid: UUID | None) -> Response:
        """Do what the request asks and return the answer; domain errors are mapped by config.errors."""

    def take_query(self, request: Request) -> None:
        """Leave the query of a POST to `_answer`, so that a wrong one is recorded with the call."""
        if request.method != "POST":
            super().take_query(request)

    def post(self, request: Request, checkout_uuid: UUID | None = None) -> HttpResponse | Response:
        if self.in_one_transaction:
            with transaction.atomic():
                return self._post(request, checkout_uuid)
        return self._post(request, checkout_uuid)

    def _post(self, request: Request, checkout_uuid: UUID | None) -> HttpResponse | Response:
        call = _new_call(request, checkout_uuid)
        try:
            replay = _claim(call, request.headers.get("Idempotency-Key"))
        except KeyRefused as refused:
            call.idempotency_key = None
            return _finish(call, self.handle_exception(refused))
        return _finish(call, self._answer(call, request)) if replay is None else replay

    def _answer(self, call: ApiCall, request: Request) -> Response:
        """Return the answer to the request; if the database fails, free the key and raise the error."""
        try:
            super().take_query(request)
            return self.act(request, call.checkout_uuid)
        except OperationalError:
            self._free(call)
            raise
        except Exception as error:
            return self._refusal(call, error)

    def _refusal(self, call: ApiCall, error: Exception) -> Response:
        """Return the answer to an error; if nothing maps it, it is a bug: free the key and raise it."""
        try:
            return self.handle_exception(error)
        except Exception:
            self._free(call)
            raise

    def _free(self, call: ApiCall) -> None:
        """Let the key be used again at once, by deleting the call; in one transaction the rollback does it."""
        if call.idempotency_key is not None and not self.in_one_transaction:
            ApiCall.objects.filter(pk=call.pk).delete()


def _new_call(request: Request, checkout_uuid: UUID | None) -> ApiCall:
    caller = caller_of(request)
    method, path = str(request.method), request.path
    return ApiCall(
        merchant=caller.merchant,
        client_uuid=caller.client_uuid,
        checkout_uuid=checkout_uuid,
        method=method,
        path=path[:300].replace("\x00", "\N{REPLACEMENT CHARACTER}"),  # PostgreSQL has no NUL
        request_id=request_id.current(),
        request_digest=_digest(request),
        created_at=Now(),
    )


def _digest(request: Request) -> str:
    """Return the digest of method, path and body, by which requests are the same; "" without a key."""
    if "Idempotency-Key" not in request.headers:
        return ""
    return hashlib.sha256(f"{request.method} {request.path}\n".encode() + request.body).hexdigest()


def _claim(call: ApiCall, key: str | None) -> HttpResponse | None:
    """Write the row that owns the key, or return the stored answer. Raises KeyRefused.

    Rules idempotency.in_flight, idempotency.at_once.
    """
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise InvalidIdempotencyKey
    call.idempotency_key = key
    while True:
        try:
            with transaction.atomic():
                call.save(force_insert=True)
            failpoint.reach("key_claimed")
            return None
        except IntegrityError:
            pass
        except OperationalError:
            raise IdempotencyInProgress from None
        same_key = ApiCall.objects.filter(merchant=call.merchant, idempotency_key=call.idempotency_key)
        stored = same_key.annotate(age=Now() - F("created_at")).first()
        if stored is not None and not _release(stored, stored.age, call):
            return _replay(stored, call)


def _release(stored: ApiCall, age: timedelta, call: ApiCall) -> bool:
    """Free the key of a call that is too old, or whose process died before answering; return whether it was freed."""
    if age < KEPT and (stored.status is not None or age < TAKEN_OVER_AFTER):
        return False
    if age < KEPT and stored.request_digest != call.request_digest:
        return False
    ApiCall.objects.filter(pk=stored.pk).update(idempotency_key=None)
    return True


def _replay(stored: ApiCall, call: ApiCall) -> HttpResponse:
    if stored.request_digest != call.request_digest:
        raise IdempotencyKeyReused
    if stored.status is None:
        raise IdempotencyInProgress
    _name_checkout(stored)
    response = HttpResponse(bytes(stored.body or b""), status=stored.status, content_type="application/json")
    if stored.status == 204:
        del response["Content-Type"]
    response["Idempotent-Replay"] = "true"
    response["Cache-Control"] = "no-store"
    return response


def _name_checkout(call: ApiCall) -> None:
    """Have the request's lines and its span name the checkout, also where its address does not."""
    if call.checkout_uuid is not None:
        structlog.contextvars.bind_contextvars(checkout=str(call.checkout_uuid))


def _finish(call: ApiCall, response: Response) -> Response:
    """Write the answer into the call; if it may change, the key is freed and the row stays for the timeline alone."""
    content: Any = response.data
    if isinstance(content, dict):
        call.error_code = content.get("error", {}).get("code", "")
    if call.checkout_uuid is None and not call.error_code and isinstance(content, dict):
        call.checkout_uuid = UUID(content["data"]["checkout_uuid"])
        _name_checkout(call)
    call.status = response.status_code
    call.body = orjson.dumps(content) if content is not None else b""
    if call.idempotency_key is None:
        call.body = None
        call.save(force_insert=True)
        return response
    failpoint.reach("answer_made")
    if not (200 <= response.status_code < 300 or response.status_code in KEPT_REFUSALS):
        call.idempotency_key, call.body = None, None
        call.save(update_fields=["status", "error_code", "checkout_uuid", "idempotency_key"])
        return response
    call.save(update_fields=["status", "error_code", "checkout_uuid", "body"])
    failpoint.reach("answer_kept")
    return response
