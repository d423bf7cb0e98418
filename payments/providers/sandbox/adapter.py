"""The sandbox bank behind the provider's port."""

from django.conf import settings

from payments.models import Operation
from payments.provider import CardForm, Outcome
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import CardSession


class SandboxProvider:
    """Fulfils payments.provider.Provider in local and sandbox."""

    def open_card_form(self, form: CardForm) -> str:
        session = CardSession.objects.create(subject=form.subject, return_url=form.return_url, page=form.page)
        return f"{settings.BASE_URL}/bank/card/{session.pk}"

    def authorize(self, operation: Operation, card_token: str) -> Outcome:
        payment = operation.payment
        return bank.authorize(
            operation.pk,
            payment=payment.pk,
            subject=payment.subject,
            amount=operation.amount,
            currency=payment.currency,
            card_token=card_token,
        )

    def capture(self, operation: Operation) -> Outcome:
        return bank.capture(operation.pk, payment=operation.payment_id)

    def void(self, operation: Operation) -> Outcome:
        return bank.void(operation.pk, payment=operation.payment_id)

    def refund(self, operation: Operation) -> Outcome:
        return bank.refund(operation.pk, payment=operation.payment_id, amount=operation.amount)

    def look_up(self, operation: Operation) -> Outcome:
        return bank.look_up(operation.pk)
