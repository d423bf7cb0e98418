"""What a carrier says became of a message: Twilio's status callbacks. Amazon SNS has none.

Rule sms.receipt.
"""

from uuid import UUID

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from hosted_page.models import SmsMessage

log = structlog.get_logger("hosted_page.sms.receipts")
Receipt = SmsMessage.Receipt
ENDS = {
    "delivered": Receipt.DELIVERED,
    "read": Receipt.DELIVERED,
    "undelivered": Receipt.UNDELIVERED,
    "failed": Receipt.UNDELIVERED,
    "canceled": Receipt.UNDELIVERED,
}


@csrf_exempt  # its signature proves who sent it
@require_POST
def take_from_twilio(request: HttpRequest, message_uuid: UUID) -> HttpResponse:
    """Take a callback about a message: 204, also for a repeated one; 403 for one that Twilio has not signed."""
    if not _is_signed(request):
        return HttpResponse("The signature does not fit.", status=403, content_type="text/plain")
    receipt = ENDS.get(request.POST.get("MessageStatus", ""))
    if receipt is not None:
        from hosted_page.sms.senders import twilio

        record(message_uuid, receipt, refusal=twilio.reason(request.POST.get("ErrorCode")))
    return HttpResponse(status=204)


def _is_signed(request: HttpRequest) -> bool:
    """Return whether Twilio signed exactly this, for the address that we gave it, whatever proxies made of it."""
    if settings.SMS_SENDER != settings.TWILIO_SMS_SENDER:
        return False  # there is no key: anybody could sign
    from twilio.request_validator import RequestValidator  # an extra of the installation

    address = settings.BASE_URL + request.get_full_path()
    signature = request.headers.get("X-Twilio-Signature", "")
    is_signed: bool = RequestValidator(settings.TWILIO_AUTH_TOKEN).validate(address, request.POST, signature)
    return is_signed


def record(message_uuid: UUID, receipt: SmsMessage.Receipt, *, refusal: str) -> None:
    """Keep what became of a message. The first word counts: callbacks are repeated, and may overtake each other."""
    is_lost = receipt == Receipt.UNDELIVERED
    kept = {"receipt": receipt, "refusal": refusal if is_lost else ""}
    is_new = SmsMessage.objects.filter(pk=message_uuid, receipt="").update(**kept)
    if is_new and is_lost:
        log.warning("SMS not delivered", sms=str(message_uuid), reason=refusal)
