"""All settings, in this order: environment, apps, request, database, people, API, Celery, mail, logs."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import phonenumbers
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config import env, logs, openapi
from config.lib.database import bounded_connection, json_numbers, partitions

BASE_DIR = Path(__file__).resolve().parent.parent

# --- Environment -----------------------------------------------------------------------------------------


class Environment(NamedTuple):
    """The features that an environment allows (rule environment.table)."""

    sandbox: bool  # has the sandbox bank, test cards, SMS codes on the page, and the helper API
    loopback: bool  # webhook and return URLs may use http and loopback addresses; credentials are printed


ENVIRONMENTS = {
    "local": Environment(sandbox=True, loopback=True),
    "sandbox": Environment(sandbox=True, loopback=False),
    "production": Environment(sandbox=False, loopback=False),
}
SANDBOX_PROVIDER = "payments.providers.sandbox.adapter.SandboxProvider"
PAGE_SMS_SENDER = "hosted_page.sms.senders.page.PageSender"
STRIPE_PROVIDER = "payments.providers.stripe.adapter.StripeProvider"
TWILIO_SMS_SENDER = "hosted_page.sms.senders.twilio.TwilioSender"

ENVIRONMENT = env.choice("ENVIRONMENT", set(ENVIRONMENTS))
SANDBOX, LOCAL = ENVIRONMENTS[ENVIRONMENT]
BASE_URL = env.text("BASE_URL", "http://127.0.0.1:8000" if LOCAL else None).rstrip("/")
PROVIDER = env.text("PROVIDER", SANDBOX_PROVIDER if SANDBOX else None)
SMS_SENDER = env.text("SMS_SENDER", PAGE_SMS_SENDER if SANDBOX else None)
DEBUG = False


def _refuse(reason: str) -> None:
    raise ImproperlyConfigured(f"ENVIRONMENT={ENVIRONMENT}: {reason}")


if (PROVIDER == SANDBOX_PROVIDER) != SANDBOX:
    _refuse("the sandbox bank and no other provider serves local and sandbox; production needs a real one.")
if (SMS_SENDER == PAGE_SMS_SENDER) != SANDBOX:
    _refuse("codes are shown on the page in local and sandbox alone; production needs a real SMS sender.")
if not LOCAL and urlsplit(BASE_URL).scheme != "https":
    _refuse("BASE_URL must be an https address.")
if LOCAL and urlsplit(BASE_URL).hostname not in {"127.0.0.1", "localhost"}:
    _refuse("local is bound to this machine: BASE_URL must be a loopback address.")

FAIL_POINTS = env.optional("FAIL_POINTS")  # the folder where tests put files that arm fail points
if FAIL_POINTS and not LOCAL:
    _refuse("FAIL_POINTS is for tests on one machine.")

WEBHOOK_LOOPBACK = env.boolean("WEBHOOK_LOOPBACK", LOCAL)  # allows webhooks over http and to this machine
if WEBHOOK_LOOPBACK and not LOCAL:
    _refuse("WEBHOOK_LOOPBACK is only for local: webhooks go to public addresses.")

SECRET_KEY = env.text("SECRET_KEY")
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS")  # former keys, whose signatures are still accepted
LOOKUP_KEY = env.text("LOOKUP_KEY", SECRET_KEY)  # for the digests by which the service finds rows
LOOKUP_KEY_FALLBACKS = env.former_lookup_keys(SECRET_KEY_FALLBACKS)  # former keys, for rows with old digests
FIELD_KEYS = env.words("FIELD_KEYS")
if not FIELD_KEYS:
    raise ImproperlyConfigured("Set FIELD_KEYS to one or more Fernet keys, comma-separated, newest first.")
if not LOCAL and len(SECRET_KEY) < 50:
    _refuse("SECRET_KEY must be 50 random characters or more.")
if not LOCAL and not all(env.is_fernet_key(key) for key in FIELD_KEYS):
    _refuse("FIELD_KEYS must be Fernet keys, comma-separated: 32 random bytes each, in URL-safe base64.")
PORTAL_URL = env.with_localhost(BASE_URL)  # where people log in; passkeys work only at this address
CHECKOUT_PAGE_URL = env.text("CHECKOUT_PAGE_URL", f"{BASE_URL}/pay")
if not LOCAL and not re.fullmatch(r"https://[^/?#]+/pay", CHECKOUT_PAGE_URL):
    _refuse("CHECKOUT_PAGE_URL must be an https address whose path is /pay.")
ALLOWED_HOSTS = [str(urlsplit(url).hostname) for url in (BASE_URL, CHECKOUT_PAGE_URL)]
ALLOWED_HOSTS += env.words("ALLOWED_HOSTS")
SHOP_PORT = env.integer("SHOP_PORT", 0) if LOCAL else 0  # port of the demo shop of `make run`
if LOCAL:
    ALLOWED_HOSTS += ["127.0.0.1", "localhost"]

HOLD = timedelta(minutes=2)  # rule pay.held
UNPAID_CHECKOUT_LIFETIME = timedelta(minutes=env.integer("UNPAID_CHECKOUT_MINUTES", 60))
PAY_LINK_LIFETIME = timedelta(days=14)
SMS_COUNTRIES = [country.upper() for country in env.words("SMS_COUNTRIES")]  # empty: all countries
if set(SMS_COUNTRIES) - phonenumbers.SUPPORTED_REGIONS:
    _refuse("SMS_COUNTRIES holds countries' two letters, such as GB, comma-separated.")
SMS_SENDER_IDS = env.pairs("SMS_SENDER_IDS")  # the sender that an SMS shows, by the recipient's country
if set(SMS_SENDER_IDS) - phonenumbers.SUPPORTED_REGIONS:
    _refuse(
        "SMS_SENDER_IDS holds countries' two letters with a sender each, such as GB:Checkout,US:+15550100."
    )
_SENDER_ID = re.compile(r"\+[1-9][0-9]{6,14}|[0-9]{3,8}|(?=.*[A-Za-z])[A-Za-z0-9-]{1,11}")
if not all(_SENDER_ID.fullmatch(sender) for sender in SMS_SENDER_IDS.values()):
    _refuse(
        "a sender in SMS_SENDER_IDS is a number such as +15550100, or 1 to 11 letters, digits and dashes."
    )
TWILIO_ACCOUNT_SID = TWILIO_AUTH_TOKEN = TWILIO_FROM = TWILIO_MESSAGING_SERVICE_SID = ""
if SMS_SENDER == TWILIO_SMS_SENDER:
    TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN = env.text("TWILIO_ACCOUNT_SID"), env.text("TWILIO_AUTH_TOKEN")
    TWILIO_FROM = env.optional("TWILIO_FROM")
    TWILIO_MESSAGING_SERVICE_SID = env.optional("TWILIO_MESSAGING_SERVICE_SID")
    if not re.fullmatch(r"AC[0-9a-f]{32}", TWILIO_ACCOUNT_SID):
        _refuse("TWILIO_ACCOUNT_SID is AC and 32 hexadecimal digits.")
    if bool(TWILIO_FROM) == bool(TWILIO_MESSAGING_SERVICE_SID):
        _refuse("set one of TWILIO_FROM and TWILIO_MESSAGING_SERVICE_SID.")
    if TWILIO_FROM and not _SENDER_ID.fullmatch(TWILIO_FROM):
        _refuse("TWILIO_FROM is a number such as +15550100, or 1 to 11 letters, digits and dashes.")
    if TWILIO_MESSAGING_SERVICE_SID and not re.fullmatch(r"MG[0-9a-f]{32}", TWILIO_MESSAGING_SERVICE_SID):
        _refuse("TWILIO_MESSAGING_SERVICE_SID is MG and 32 hexadecimal digits.")
STRIPE_SECRET_KEY = STRIPE_PUBLISHABLE_KEY = ""  # rule provider.live_keys
STRIPE_WEBHOOK_SECRETS: list[str] = []
if PROVIDER == STRIPE_PROVIDER:
    STRIPE_SECRET_KEY = env.text("STRIPE_SECRET_KEY")
    STRIPE_PUBLISHABLE_KEY = env.text("STRIPE_PUBLISHABLE_KEY")
    STRIPE_WEBHOOK_SECRETS = env.words("STRIPE_WEBHOOK_SECRET")  # during a rotation, also the old secret
    if not re.fullmatch(r"[sr]k_live_\w+", STRIPE_SECRET_KEY, re.ASCII):
        _refuse(
            "STRIPE_SECRET_KEY is a live key, which begins with sk_live_ or rk_live_: a test key takes no money."
        )
    if not re.fullmatch(r"pk_live_\w+", STRIPE_PUBLISHABLE_KEY, re.ASCII):
        _refuse("STRIPE_PUBLISHABLE_KEY is a live key, which begins with pk_live_.")
    if not STRIPE_WEBHOOK_SECRETS or not all(key.startswith("whsec_") for key in STRIPE_WEBHOOK_SECRETS):
        _refuse(
            "STRIPE_WEBHOOK_SECRET is the signing secret of your webhook endpoint, which begins with whsec_."
        )
STRIPE_IS_LIVE = "_live_" in STRIPE_SECRET_KEY
STRIPE_API = env.text("STRIPE_API", "https://api.stripe.com")
STRIPE_SCRIPT = env.text("STRIPE_SCRIPT", "https://js.stripe.com/endive/stripe.js")
SMS_SLOTS = env.integer("SMS_SLOTS", 8)  # SMS messages that a worker sends to the carrier at the same time
SMS_MERCHANT_BUDGET = env.integer("SMS_MERCHANT_BUDGET", 5_000)  # SMS messages per day without a payment
SMS_TOTAL_BUDGET = env.integer("SMS_TOTAL_BUDGET", 50_000)
SMS_RANGE_BUDGET = env.integer("SMS_RANGE_BUDGET", 500)  # SMS messages a day to each range of 10,000 phone numbers
# The delay between a mate's payment and the reimbursement of the lead's card. Rule reimburse.delay.
REIMBURSEMENT_DELAY = timedelta(hours=env.integer("REIMBURSEMENT_HOURS", 0 if SANDBOX else 24))
SANDBOX_REFUND_SECONDS = env.integer("SANDBOX_REFUND_SECONDS", 2)
SANDBOX_KEY_SECONDS = env.integer("SANDBOX_KEY_SECONDS", 86_400)
# The numbers of threads of a process that can wait for the provider at the same time.
PROVIDER_SLOTS = env.integer("PROVIDER_SLOTS", 24)  # threads of a web process, for payers' requests
CAPTURE_SLOTS = env.integer("CAPTURE_SLOTS", 16)  # threads of a web process, for captures
PUMP_SLOTS = env.integer("PUMP_SLOTS", 4)  # threads per worker for each of three kinds of operations
PASSWORD_SLOTS = env.integer("PASSWORD_SLOTS", 1)  # passwords that a process hashes at the same time
WEBHOOK_SLOTS = env.integer("WEBHOOK_SLOTS", 200)
WEBHOOK_SOURCE_ADDRESSES = env.networks("WEBHOOK_SOURCE_ADDRESSES")  # published to merchants
WEBHOOK_RETENTION = timedelta(days=env.integer("WEBHOOK_RETENTION_DAYS", 30))
API_CALL_RETENTION = timedelta(days=env.integer("API_CALL_RETENTION_DAYS", 90))
if min(API_CALL_RETENTION, WEBHOOK_RETENTION) < partitions.YOUNGEST:
    _refuse("API_CALL_RETENTION_DAYS and WEBHOOK_RETENTION_DAYS must be at least 7 days.")
PERSON_RETENTION = timedelta(days=env.integer("PERSON_RETENTION_DAYS", 760))  # after a person's last order
ERASURES_FILE = env.optional("ERASURES_FILE")  # a file outside the database that lists erased people
DATABASE_RESTORED = env.optional("DATABASE_RESTORED")  # any new value after each restore of a snapshot
METRICS_TOKEN = env.optional("METRICS_TOKEN")  # the bearer token for /metrics
if METRICS_TOKEN and not LOCAL and len(METRICS_TOKEN) < 20:
    _refuse("METRICS_TOKEN must be 20 random characters or more.")
SENTRY_DSN = env.optional("SENTRY_DSN")  # where errors are reported
TRACES = bool(env.optional("OTEL_EXPORTER_OTLP_ENDPOINT"))  # OpenTelemetry reads its variables directly
PROBE_HOST = env.text("PROBE_HOST", "127.0.0.1")
PROBE_PORT = env.integer("PROBE_PORT", 0)  # the port where a worker or beat answers probes; 0: no probes

# --- Apps ------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "payments",
    "payments.providers.sandbox",
    "webhooks",
    "checkout",
    "hosted_page",
    "config",
    "rest_framework",
    "drf_spectacular",
    "oauth2_provider",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "portal",
    "csp",
    "django_htmx",
    "portal.apps.AdminConfig",  # django.contrib.admin
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
]

# --- Request ---------------------------------------------------------------------------------------------

ROOT_URLCONF = "config.urls"
APPEND_SLASH = False
MIDDLEWARE = [
    "config.lib.web.request_id.RequestIdMiddleware",
    "config.headers.HeadersMiddleware",
    "config.lib.web.cookies.CookieMiddleware",
    "config.errors.ApiErrorMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "config.lib.web.csp.PolicyMiddleware",
    "hosted_page.language.LanguageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.body_limits.BodyMiddleware",
    "config.health.HealthMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.common.CommonMiddleware",
    "config.headers.NullOriginMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "config.closed_database.ClosedMiddleware",
    "portal.accounts.session_store.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.accounts.sessions.SessionMiddleware",
    "portal.accounts.password_slots.PasswordSlotMiddleware",
]
_EVERY_PAGE = "config.lib.web.error_pages.template_context"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "OPTIONS": {
            "environment": "config.lib.web.page_templates.environment",
            "context_processors": [_EVERY_PAGE, "config.lib.web.page_templates.page_globals"],
        },
    },
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["django.templatetags.i18n", "config.lib.web.static_tags"],
            "context_processors": [
                "django.template.context_processors.request",
                _EVERY_PAGE,
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
FILE_UPLOAD_HANDLERS: list[str] = []  # no uploads; the view of a merchant's logo sets its own handler
LOGO_PATH, LARGEST_UPLOAD = "/portal/settings/save", 512 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 250  # our longest form has a hundred checkboxes
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024  # rule api.body_size
CONTENT_SECURITY_POLICY = {  # rule secret.csp
    "DIRECTIVES": {
        **{name: [NONE] for name in ("default-src", "base-uri", "object-src", "frame-ancestors")},
        **{f"{kind}-src": [SELF] for kind in ("script", "style", "img", "font", "connect")},
        **{"form-action": [SELF], "report-uri": ["/csp-reports"], "report-to": None if LOCAL else ["csp"]},
    }
}
SECURE_SSL_REDIRECT = not LOCAL
SECURE_REDIRECT_EXEMPT = [r"^(livez|readyz|metrics)$"]  # probes use http and the IP address
TRUSTED_PROXY_COUNT = env.integer("TRUSTED_PROXY_COUNT", 0)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXY_COUNT else None
SECURE_HSTS_SECONDS = 0 if LOCAL else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = not LOCAL
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not LOCAL
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "config.lib.web.error_pages.show_old_page"
# Browsers accept a cookie with this prefix only from this host and only over https. Rule secret.cookies.
COOKIE_PREFIX = "" if LOCAL else "__Host-"
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}sessionid", f"{COOKIE_PREFIX}csrftoken"
X_FRAME_OPTIONS = "DENY"
STATIC_URL = "static/"
STATIC_ROOT = None if LOCAL else BASE_DIR / ".static"  # filled by `make static`
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = LOCAL
WHITENOISE_AUTOREFRESH = False
_PLAIN = "django.contrib.staticfiles.storage.StaticFilesStorage"
STORAGES = {"staticfiles": {"BACKEND": _PLAIN if LOCAL else "config.lib.web.static_files.HashedStaticFiles"}}

# --- Database --------------------------------------------------------------------------------------------

_DATABASE = env.database("DATABASE_URL")
_POOL_SIZE = env.integer("DATABASE_POOL", 16)  # 0: no pool, each thread opens a connection when it needs one
_POOL = {"min_size": 1, "max_size": _POOL_SIZE, "timeout": 5} if _POOL_SIZE else False
# PostgreSQL then keeps a statement's plan after its fifth use in a connection, which halves its CPU time.
# Turn this off for a transaction pooler that does not support prepared statements.
_IS_PREPARED = env.boolean("DATABASE_PREPARE", False)
_PREPARING = {"server_side_binding": True, "prepare_threshold": 5} if _IS_PREPARED else {}
json_numbers.parse_large_numbers_as_floats()
DATABASES = {
    "default": {
        **_DATABASE,
        "ENGINE": "django.db.backends.postgresql",
        "CONN_HEALTH_CHECKS": True,  # a request does not fail if its connection died in the pool
        "DISABLE_SERVER_SIDE_CURSORS": True,  # PgBouncer can run each statement on a different connection
        "OPTIONS": {**_DATABASE["OPTIONS"], "pool": _POOL, **_PREPARING},
    }
}
_REPLICA = env.database("DATABASE_REPLICA_URL") if env.optional("DATABASE_REPLICA_URL") else {}
if _REPLICA:  # rules replica.*: only code that uses config.lib.database.replica reads there
    DATABASES["replica"] = {
        **_REPLICA,
        "ENGINE": "django.db.backends.postgresql",
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "OPTIONS": {
            "connect_timeout": 2,
            **_REPLICA["OPTIONS"],
            "pool": {
                "min_size": 1,
                "max_size": _POOL_SIZE or 1,
                "timeout": bounded_connection.ANSWER_SECONDS,
                "reconnect_timeout": 5,  # seconds; after that, the pool connects only if a thread asks
                "connection_class": bounded_connection.BoundedConnection,
            },
        },
    }
# The role of `migrate`, if the service's own role does not own the tables.
DATABASE_OWNER = env.database("DATABASE_OWNER_URL") if env.optional("DATABASE_OWNER_URL") else {}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}}
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-gb"
FORMAT_MODULE_PATH = "config.formats"
LANGUAGES = [
    *[("en-gb", "English"), ("de", "Deutsch"), ("es", "Español")],
    *[("fr", "Français"), ("it", "Italiano"), ("nl", "Nederlands")],
]
LANGUAGE_COOKIE_NAME = f"{COOKIE_PREFIX}language"

# --- People ----------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "portal.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "portal.accounts.passwords.MaximumLengthValidator", "OPTIONS": {"max_length": 128}},
    {"NAME": "portal.accounts.passwords.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "portal.accounts.passwords.ContextWordsValidator"},
    {"NAME": "portal.accounts.passwords.PreviousPasswordsValidator"},
]
PASSWORD_HASHERS = ["portal.accounts.password_slots.PasswordHasher", "portal.keys.ClientSecretHasher"]
PASSWORD_RESET_TIMEOUT = 3600  # seconds for which an emailed password-reset link works
ACCOUNT_ADAPTER = "portal.accounts.login.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Sandbox] " if SANDBOX else ""
ACCOUNT_RATE_LIMITS = False  # portal.accounts.login_limits counts instead, in rows that survive a cache flush
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "django.contrib.auth.tokens.PasswordResetTokenGenerator"
ACCOUNT_LOGIN_BY_CODE_ENABLED = True
ACCOUNT_LOGIN_BY_CODE_FORMAT = {"numeric": True, "length": 8, "dashed": False}
ACCOUNT_LOGIN_BY_CODE_TIMEOUT = 600  # seconds
ACCOUNT_LOGIN_BY_CODE_MAX_ATTEMPTS = 3
ACCOUNT_FORMS = {
    "login": "portal.accounts.login_forms.LoginForm",
    "reset_password": "portal.accounts.login_forms.ResetPasswordForm",
    "request_login_code": "portal.accounts.login_forms.RequestLoginCodeForm",
    "confirm_login_code": "portal.accounts.login_forms.ConfirmLoginCodeForm",
    "change_password": "portal.accounts.login_forms.ChangePasswordForm",
}
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300  # seconds for which a reauthentication is valid
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "portal_home"
SESSION_ENGINE = "portal.accounts.session_store"
SESSION_SERIALIZER = "config.lib.crypto.SessionSerializer"
SESSION_COOKIE_AGE, SESSION_LONGEST = 15 * 60, 12 * 3600  # seconds after the last request, and in total
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
SECOND_FACTOR_REQUIRED = env.boolean("SECOND_FACTOR_REQUIRED", not LOCAL)  # for every person
if not LOCAL and not SECOND_FACTOR_REQUIRED:
    _refuse("SECOND_FACTOR_REQUIRED can only be false in local. Remove it from the environment.")
MFA_ADAPTER = "portal.accounts.login.MfaAdapter"
MFA_ALLOW_UNVERIFIED_EMAIL = True  # people join by an emailed link, which proves their address
MFA_FORMS = {
    "authenticate": "portal.accounts.login_forms.SecondFactorForm",
    "reauthenticate": "portal.accounts.login_forms.SecondFactorAgainForm",
    "authenticate_webauthn": "portal.accounts.passkey_forms.PasskeyForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "required"  # makes a passkey count as two factors
MFA_RATE_LIMITS = False  # portal.accounts.login_limits counts instead, as for passwords
MFA_TOTP_ISSUER = "Merchant Checkout" + (" (test)" if SANDBOX else "")
MFA_TOTP_TOLERANCE = 1  # steps of half a minute by which a phone's clock can be wrong
LIVE_PORTAL_URL = env.optional("LIVE_PORTAL_URL")  # address of the other environment's portal
SANDBOX_PORTAL_URL = env.optional("SANDBOX_PORTAL_URL")

# --- API -------------------------------------------------------------------------------------------------

OAUTH2_PROVIDER_APPLICATION_MODEL = "portal.ApiClient"
KEYS_RECORDED_BY = "portal.audit.record_key_action"  # this function records what an API key has changed
OPERATORS_RECORDED_BY = "portal.operator_changes"  # the module for operators' changes to a merchant
DISCREPANCIES_DESCRIBED_BY = "portal.backoffice.cases"  # the module that names the order of a discrepancy
# This function decides whether personal data may be sent to an endpoint that an API key has set.
KEYS_APPROVED_BY = "portal.keys.may_approve_endpoint"
SCOPES = {
    "checkouts:read": "Read and list checkouts",
    "checkouts:write": "Create, capture and cancel checkouts",
    "refunds:write": "Refund captured checkouts",
    "webhooks:read": "Read the webhook subscription, the events and the delivery log",
    "webhooks:write": "Change the webhook subscription and rotate its secret",
    "customers:read": "See who opted in: name, number, e-mail",
}
PERSONAL_SCOPES = {"customers:read"}  # an API key gets these scopes only if an owner selects them
OAUTH2_PROVIDER = {
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    "SCOPES": SCOPES,
    "DEFAULT_SCOPES": list(SCOPES),
    "OAUTH2_BACKEND_CLASS": "portal.oauth.library.Core",
    "OAUTH2_VALIDATOR_CLASS": "portal.oauth.library.Validator",
    "SCOPES_BACKEND_CLASS": "portal.oauth.library.ClientScopes",
    "CLIENT_SECRET_HASHER": "client_secret",
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_SCHEME": True,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https"],
}
LIMITS = {  # rules limit.buckets, limit.test_events, token.failures
    "reads": env.text("LIMIT_READS", "100/second"),
    "creates": env.text("LIMIT_CREATES", "50/second"),
    "verbs": env.text("LIMIT_VERBS", "100/second"),  # capture and cancel
    "url_checks": env.text("LIMIT_URL_CHECKS", "30/minute"),  # checks of a merchant's webhook address
    "test_events": "60/hour",  # per merchant: each one is a POST to the merchant's endpoint
    "csp_reports": "30/minute",  # per network: each one is a browser's request with up to 20 reports
    "refusals_listed": "10/minute",  # entries per key and error code in the portal's log of requests
    "token_failures": env.text("LIMIT_TOKEN_FAILURES", "20/minute"),
}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["config.merchant_api.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["config.merchant_api.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["config.merchant_api.ClientLimits"],
    "DEFAULT_PARSER_CLASSES": ["config.merchant_api.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["config.merchant_api.DataRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "config.merchant_api.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "config.openapi.schema.EndpointSchema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "config.errors.handle_exception",
    "UNAUTHENTICATED_USER": None,
    "NON_FIELD_ERRORS_KEY": "",
}
SPECTACULAR_SETTINGS = openapi.settings(BASE_URL)

# --- Celery ----------------------------------------------------------------------------------------------

REDIS_URL = env.text("REDIS_URL")
if not LOCAL and REDIS_URL.startswith("rediss://") and "ssl_cert_reqs=required" not in REDIS_URL:
    _refuse("REDIS_URL must say ?ssl_cert_reqs=required: else rediss:// would trust any server that answers.")
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_TASK_PUBLISH_RETRY_POLICY = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.2,
}
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "ack_emulation": False,
    "socket_timeout": 3,
    "socket_connect_timeout": 1,
    "health_check_interval": 10,
    **CELERY_TASK_PUBLISH_RETRY_POLICY,
}
CELERY_TASK_IGNORE_RESULT = True
# A lost task does no harm, because a later run finds the same rows. Redis therefore stores no copy of a task
# that a worker has taken. With late acknowledgement, a worker would end if Redis failed during a task.
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = 4 * PUMP_SLOTS
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None

# --- Mail ------------------------------------------------------------------------------------------------

EMAIL_BACKEND = f"django.core.mail.backends.{'filebased' if LOCAL else 'smtp'}.EmailBackend"
EMAIL_FILE_PATH = BASE_DIR / ".local" / "mail"  # in the environment local, e-mails are only written to files
EMAIL_HOST = env.text("EMAIL_HOST", "localhost")
EMAIL_PORT = env.integer("EMAIL_PORT", 587)
EMAIL_HOST_USER = env.optional("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.optional("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env.boolean("EMAIL_USE_TLS", True)
EMAIL_TIMEOUT = 5  # seconds to wait for each response of the mail server
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "checkout@localhost")
OPERATORS = env.words("OPERATORS", "operators@localhost" if LOCAL else "")
SUPPORT_EMAIL = env.text("SUPPORT_EMAIL", [*OPERATORS, DEFAULT_FROM_EMAIL][0])  # merchants write there

# --- Logs: config/logs.py -----------------------------------------------------------------------------------

LOGGING = logs.configure(in_words=LOCAL)
