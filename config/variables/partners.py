"""Variables for the card provider, the SMS carrier and the mail server."""

from dataclasses import dataclass

from config.variables import value_types
from config.variables.value_types import whole
from config.variables.variable import SANDBOXES, variable

SANDBOX_PROVIDER = "payments.providers.sandbox.adapter.SandboxProvider"
STRIPE_PROVIDER = "payments.providers.stripe.adapter.StripeProvider"
PAGE_SMS_SENDER = "hosted_page.sms.senders.page.PageSender"
TWILIO_SMS_SENDER = "hosted_page.sms.senders.twilio.TwilioSender"


@dataclass(frozen=True)
class Partners:
    """The values of the variables that concern other services."""

    PROVIDER: str = variable(
        value_types.CLASS_PATH,
        "The dotted path of the card provider's adapter. Production needs a real provider. For Stripe: "
        f"`{STRIPE_PROVIDER}`.",
        in_=dict.fromkeys(SANDBOXES, SANDBOX_PROVIDER),
        shown_default="the sandbox bank, in `local` and `sandbox`",
    )
    STRIPE_SECRET_KEY: str = variable(
        value_types.matching(r"[sr]k_live_\w+", "a live key, which begins with sk_live_ or rk_live_"),
        "The live secret key of the account at Stripe.",
        default="",
        is_secret=True,
    )
    STRIPE_PUBLISHABLE_KEY: str = variable(
        value_types.matching(r"pk_live_\w+", "a live key, which begins with pk_live_"),
        "The live publishable key of the account at Stripe.",
        default="",
        is_secret=True,
    )
    STRIPE_WEBHOOK_SECRET: list[str] = variable(
        value_types.listed(r"whsec_\w+", "signing secrets of webhook endpoints, which begin with whsec_"),
        "The signing secrets of the webhook endpoints at Stripe, comma-separated.",
        default=[],
        is_secret=True,
    )
    STRIPE_API: str = variable(
        value_types.url("http", "https"),
        "The address of Stripe's API.",
        default="https://api.stripe.com",
        shown_default="Stripe's own",
    )
    STRIPE_SCRIPT: str = variable(
        value_types.url("http", "https"),
        "The address of Stripe's browser script.",
        default="https://js.stripe.com/endive/stripe.js",
        shown_default="Stripe's own",
    )
    SMS_SENDER: str = variable(
        value_types.CLASS_PATH,
        "The dotted path of the SMS sender. Production needs a real sender: "
        f"`{TWILIO_SMS_SENDER}` or `hosted_page.sms.senders.sns.SnsSender`. Amazon SNS uses the variables "
        "`AWS_DEFAULT_REGION`, `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or a role of the machine.",
        in_=dict.fromkeys(SANDBOXES, PAGE_SMS_SENDER),
        shown_default="the page itself, in `local` and `sandbox`",
    )
    SMS_SENDER_IDS: dict[str, str] = variable(
        value_types.SENDER_IDS,
        "The sender that texts show, for each country of a number: `GB:Checkout,US:+15550100`.",
        default={},
    )
    TWILIO_ACCOUNT_SID: str = variable(
        value_types.matching("AC[0-9a-f]{32}", "AC and 32 hexadecimal digits"),
        "The account at Twilio.",
        default="",
    )
    TWILIO_AUTH_TOKEN: str = variable(
        value_types.TEXT, "The token of the account at Twilio.", default="", is_secret=True
    )
    TWILIO_FROM: str = variable(
        value_types.matching(value_types.SENDER_ID, value_types.SENDER_WORDS),
        "The sender at Twilio: set this variable or `TWILIO_MESSAGING_SERVICE_SID`.",
        default="",
    )
    TWILIO_MESSAGING_SERVICE_SID: str = variable(
        value_types.matching("MG[0-9a-f]{32}", "MG and 32 hexadecimal digits"),
        "The messaging service at Twilio.",
        default="",
    )
    SMS_COUNTRIES: list[str] = variable(
        value_types.COUNTRIES,
        "The countries to which texts are sent, as two letters each, comma-separated.",
        default=[],
        shown_default="all",
    )
    SMS_MERCHANT_BUDGET: int = variable(
        whole(1, 10_000_000),
        "The number of texts a day (UTC) that can be sent without a payment, for each merchant. When it is "
        "used up, no more texts are sent. `OPERATORS` get a mail at 80 %.",
        default=5_000,
    )
    SMS_TOTAL_BUDGET: int = variable(
        whole(1, 100_000_000),
        "The number of texts a day (UTC) that can be sent without a payment, for all merchants together.",
        default=50_000,
    )
    EMAIL_HOST: str = variable(
        value_types.TEXT,
        "The mail server, by SMTP. Unused in `local`.",
        default="localhost",
        example="smtp.example",
    )
    EMAIL_PORT: int = variable(whole(1, 65_535), "The port of the mail server.", default=587)
    EMAIL_USE_TLS: bool = variable(
        value_types.FLAG, "Whether mails are sent with STARTTLS. It must be true in production.", default=True
    )
    EMAIL_HOST_USER: str = variable(
        value_types.TEXT, "The user name for the mail server, if it needs a login.", default=""
    )
    EMAIL_HOST_PASSWORD: str = variable(
        value_types.TEXT, "The password for the mail server.", default="", is_secret=True
    )
    DEFAULT_FROM_EMAIL: str = variable(
        value_types.EMAIL,
        "The sender of the service's mails.",
        default="checkout@localhost",
        example="checkout@checkout.example",
    )
    OPERATORS: list[str] = variable(
        value_types.EMAILS,
        "The recipients of mails about discrepancies, comma-separated. If it is empty, no such mails are sent.",
        default=[],
        in_={"local": ["operators@localhost"]},
        example="operators@checkout.example",
    )
    SUPPORT_EMAIL: str = variable(
        value_types.EMAIL,
        "The address to which merchants write, for example with their evidence in a dispute. Pages and mails "
        "name it.",
        default="",
        shown_default="the first of `OPERATORS`",
        example="support@checkout.example",
    )
