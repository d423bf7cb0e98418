"""Maps each model to the function that makes the top of its pages."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest

from portal.backoffice.record_heads import discrepancies, emails, operations, others, payments, webhooks
from portal.backoffice.record_heads.head import Head, link_to_order

HEADS: dict[str, Callable[[Any, HttpRequest], Head]] = {
    "checkout.paymentrequest": others.head_of_share,
    "checkout.refund": payments.head_of_refund,
    "hosted_page.smsmessage": others.head_of_text,
    "payments.booking": others.head_of_booking,
    "payments.discrepancy": discrepancies.head_of_discrepancy,
    "payments.dispute": payments.head_of_dispute,
    "payments.merchant": others.head_of_merchant,
    "payments.operation": operations.head_of_operation,
    "payments.payment": payments.head_of_payment,
    "payments.switch": others.head_of_switch,
    "portal.apiclient": others.head_of_key,
    "portal.auditentry": others.head_of_audit_entry,
    "portal.membership": others.head_of_membership,
    "portal.outboundemail": emails.head_of_email,
    "portal.user": others.head_of_user,
    "webhooks.attempt": webhooks.head_of_attempt,
    "webhooks.delivery": webhooks.head_of_delivery,
    "webhooks.endpoint": webhooks.head_of_endpoint,
    "webhooks.event": webhooks.head_of_event,
    "webhooks.subscription": webhooks.head_of_subscription,
}
# Sentences about records of models that have no state and do not ask for an action.
SENTENCES: dict[str, str] = {
    "admin.logentry": "An operator did this in the admin.",
    "auth.group": "Operators in this group have these rights. Only superusers change them.",
    "bank.banknotification": "The sandbox bank sends this notification to the service until it is accepted.",
    "bank.brokenkey": "Every call under this key gets the same error from the sandbox bank.",
    "bank.call": "The sandbox bank gave this answer to a call, and gives it again if the call is repeated.",
    "bank.cardsession": "A payer visited the sandbox bank’s card page.",
    "bank.cardtoken": "This token is for a test card, and can be used once.",
    "bank.charge": "This is the sandbox bank’s own record of a card payment.",
    "bank.dispute": "This is the sandbox bank’s own record of a dispute. The service has another one.",
    "bank.fault": "A test lets the sandbox bank fail in this way.",
    "checkout.apicall": "A merchant’s server made this call. The heading has the status of the answer.",
    "checkout.bill": "These are the items of an order. They never change.",
    "checkout.change": "This is an entry of an order’s history. Entries never change.",
    "checkout.customer": "This person proved this phone number. Merchants do not see the number.",
    "checkout.grouplink": "A lead shared this link with mates. The link itself is not shown, because it opens shares.",
    "checkout.idempotencykey": "A repeated call with this key gets the first answer again, for one day.",
    "checkout.leadnotification": "The lead of an order gets this news as a text.",
    "checkout.merchantcustomer": "This merchant knows a customer by this id. Other merchants have other ids.",
    "checkout.prefill": "The merchant sent these details, so the payer finds them filled in.",
    "checkout.proofrun": "This run compared the ledger of all orders with their states.",
    "checkout.replacedlink": "The lead asked a mate again, so this older pay link no longer works.",
    "hosted_page.cardtry": "A payer entered a card. The number of tries is limited.",
    "hosted_page.cspreport": "Browsers reported that a payment page tried to load this. Unexpected hosts need a look.",
    "hosted_page.knownbrowser": "This browser remembers its payer’s number for 30 days.",
    "hosted_page.optin": "A person ticked the merchant’s marketing box.",
    "hosted_page.optintext": "This is the wording of a merchant’s marketing box. A new wording is a new version.",
    "hosted_page.payersignin": "A payer signed in with a code.",
    "hosted_page.sharetake": "A person took a share through a group link. The number of shares is limited.",
    "hosted_page.signincode": "A payer asked for this code. The code itself is not stored.",
    "hosted_page.smsday": "These are the texts of one day that count against a budget.",
    "hosted_page.smsstop": "This number gets no texts except codes that it asks for.",
    "mfa.authenticator": "A person uses this second factor to log in.",
    "oauth2_provider.accesstoken": "A merchant’s server uses this token until it expires.",
    "payments.balanceentry": "The provider reports this line of a merchant’s balance.",
    "payments.databasemark": "The service compares this with the server at each start, to notice a restore.",
    "payments.formeraccount": "A merchant’s earlier payments are in this account at the provider.",
    "payments.inquiry": "The service reads this payment at the provider again.",
    "payments.lastbackup": "The last back-up was made and verified at this time.",
    "payments.ledgerclosing": "The ledger is closed until this time. Sums of closed days are stored.",
    "payments.ledgersum": "This is the stored sum of a closed day or month of the ledger.",
    "payments.logo": "Payers see this logo. The merchant changes it in the portal.",
    "payments.movement": "This money moved at the provider. Movements never change. In the postings,"
    " a minus means that the service owes the account more, or the account owes the service less.",
    "payments.posting": "This is a line of the ledger. The lines of a transaction sum to zero. A minus means that"
    " the service owes the account more, or the account owes the service less.",
    "payments.reconciled": "The provider’s books were read without a gap until this time.",
    "portal.canary": "The service reads this word at each start, to check the database’s keys.",
    "portal.checkoutnote": "A merchant’s team wrote a note on an order. Its text is private to the team.",
    "portal.deliveryhour": "These are a merchant’s webhook deliveries in one hour, for the charts of the portal.",
    "portal.invitation": "This person was invited to a merchant’s portal by mail.",
    "portal.lastwrite": "A replica shows pages to this merchant after it has reached this position of the log.",
    "portal.loginattempt": "Someone tried to log in. The number of tries is limited.",
    "portal.paymenthour": "These are a merchant’s payments in one hour, for the charts of the portal.",
    "portal.previouspassword": "A person had this password before, so it cannot be used again.",
    "portal.trial": "The sandbox ran this case through a merchant’s integration.",
    "webhooks.signingsecret": "A merchant’s server checks signatures with this secret. The secret is not shown.",
    "usersessions.usersession": "A person is logged in here. To log the person out, end this session.",
}


def head_of(row: Any, request: HttpRequest) -> Head:
    """Return the top of a record's page."""
    label = row._meta.label_lower
    if label in HEADS:
        return HEADS[label](row, request)
    checkout_uuid = getattr(row, "checkout_uuid", None) or getattr(row, "checkout_id", None)
    return Head(SENTENCES.get(label, ""), next_step="", links=link_to_order(request, checkout_uuid))
