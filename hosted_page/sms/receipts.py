"""Receives Twilio's delivery reports, called status callbacks. Amazon SNS sends no reports. Rule sms.receipt."""

from uuid import UUID

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from hosted_page.models import SmsMessage

log = structlog.get_logger("hosted_page.sms.receipts")
Receipt = SmsMessage.Receipt
RECEIPTS = {
    "delivered": Receipt.DELIVERED,
    "read": Receipt.DELIVERED,
    "undelivered": Receipt.UNDELIVERED,
    "failed": Receipt.UNDELIVERED,
    "canceled": Receipt.UNDELIVERED,
}


@csrf_exempt  # the signature proves that Twilio sent the callback
@require_POST
def receive_from_twilio(request: HttpRequest, message_uuid: UUID) -> HttpResponse:
    """Record Twilio's status callback about a message.

    Return 204, even for a repeated callback. If Twilio did not sign the callback, return 403.
    """
    if not _is_signed(request):
        return HttpResponse("The signature does not fit.", status=403, content_type="text/plain")
    receipt = RECEIPTS.get(request.POST.get("MessageStatus", ""))
    if receipt is not None:
        from hosted_page.sms.senders import twilio

        record(message_uuid, receipt, refusal=twilio.reason(request.POST.get("ErrorCode")))
    return HttpResponse(status=204)


def _is_signed(request: HttpRequest) -> bool:
    """Return whether Twilio signed exactly this request.

    The signature covers the address that the service gave to Twilio. The check therefore uses that address,
    because proxies can pass on a different one.
    """
    if settings.SMS_SENDER != settings.TWILIO_SMS_SENDER:
        return False  # no Twilio key is configured, so no signature can be checked
    # The import is in the function, because the library is an optional extra.
    from twilio.request_validator import RequestValidator

    address = settings.BASE_URL + request.get_full_path()
    signature = request.headers.get("X-Twilio-Signature", "")
    is_signed: bool = RequestValidator(settings.TWILIO_AUTH_TOKEN).validate(address, request.POST, signature)
    return is_signed


def record(message_uuid: UUID, receipt: SmsMessage.Receipt, *, refusal: str) -> None:
    """Record the delivery report for a message.

    Only the first report counts, because callbacks are repeated and can arrive out of order.
    """
    is_lost = receipt == Receipt.UNDELIVERED
    values = {"receipt": receipt, "refusal": refusal if is_lost else ""}
    is_new = SmsMessage.objects.filter(pk=message_uuid, receipt="").update(**values)
    if is_new and is_lost:
        log.warning("SMS not delivered", sms=str(message_uuid), reason=refusal)
