"""All settings, in this order: environment, apps, request, database, people, API, Celery, mail, logs."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from csp.constants import NONE, SELF
from psycopg.types.json import set_json_loads

from config import logs, openapi
from config.lib.database import bounded_connection
from config.lib.web import origins
from config.variables import connections, partners, reading

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

variables = reading.read(os.environ)
ENVIRONMENT = variables.ENVIRONMENT
SANDBOX, LOCAL = ENVIRONMENTS[ENVIRONMENT]
BASE_URL = variables.BASE_URL
PROVIDER = variables.PROVIDER
SMS_SENDER = variables.SMS_SENDER
PAGE_SMS_SENDER, TWILIO_SMS_SENDER = partners.PAGE_SMS_SENDER, partners.TWILIO_SMS_SENDER
STRIPE_PROVIDER = partners.STRIPE_PROVIDER
DEBUG = False
FAIL_POINTS = variables.FAIL_POINTS  # the folder where tests put files that arm fail points
WEBHOOK_LOOPBACK = variables.WEBHOOK_LOOPBACK  # allows webhooks over http and to this machine

SECRET_KEY = variables.SECRET_KEY
SECRET_KEY_FALLBACKS = variables.SECRET_KEY_FALLBACKS  # former keys; their signatures are still valid
LOOKUP_KEY = variables.LOOKUP_KEY or SECRET_KEY  # for the digests by which rows are looked up
# Former keys, for rows with older digests. Without a LOOKUP_KEY, the digests were made with SECRET_KEY.
LOOKUP_KEY_FALLBACKS = variables.LOOKUP_KEY_FALLBACKS + ([] if variables.LOOKUP_KEY else SECRET_KEY_FALLBACKS)
FIELD_KEYS = variables.FIELD_KEYS
PORTAL_URL = origins.with_localhost(BASE_URL)  # the address at which people log in
CHECKOUT_PAGE_URL = variables.CHECKOUT_PAGE_URL or f"{BASE_URL}/pay"
ALLOWED_HOSTS = [str(urlsplit(url).hostname) for url in (BASE_URL, CHECKOUT_PAGE_URL)]
ALLOWED_HOSTS += variables.ALLOWED_HOSTS
SHOP_PORT = variables.SHOP_PORT if LOCAL else 0  # the port of the demo shop in `make run`
if LOCAL:
    ALLOWED_HOSTS += ["127.0.0.1", "localhost"]

HOLD = timedelta(minutes=2)  # rule pay.held
UNPAID_CHECKOUT_LIFETIME = timedelta(minutes=variables.UNPAID_CHECKOUT_MINUTES)
PAY_LINK_LIFETIME = timedelta(days=14)
SMS_COUNTRIES = variables.SMS_COUNTRIES  # empty: all countries
SMS_SENDER_IDS = variables.SMS_SENDER_IDS  # the sender that an SMS shows, by the recipient's country
TWILIO_ACCOUNT_SID = variables.TWILIO_ACCOUNT_SID
TWILIO_AUTH_TOKEN = variables.TWILIO_AUTH_TOKEN
TWILIO_FROM = variables.TWILIO_FROM
TWILIO_MESSAGING_SERVICE_SID = variables.TWILIO_MESSAGING_SERVICE_SID
STRIPE_SECRET_KEY = variables.STRIPE_SECRET_KEY
STRIPE_PUBLISHABLE_KEY = variables.STRIPE_PUBLISHABLE_KEY
STRIPE_WEBHOOK_SECRETS = variables.STRIPE_WEBHOOK_SECRET  # during a rotation, also the old secret
STRIPE_IS_LIVE = "_live_" in STRIPE_SECRET_KEY
STRIPE_API = variables.STRIPE_API
STRIPE_SCRIPT = variables.STRIPE_SCRIPT
SMS_SLOTS = variables.SMS_SLOTS
SMS_MERCHANT_BUDGET = variables.SMS_MERCHANT_BUDGET
SMS_TOTAL_BUDGET = variables.SMS_TOTAL_BUDGET
SMS_RANGE_BUDGET = 500  # texts a day to numbers that differ only in their last four digits
REIMBURSEMENT_DELAY = timedelta(hours=variables.REIMBURSEMENT_HOURS)  # rule reimburse.delay
SANDBOX_REFUND_SECONDS = variables.SANDBOX_REFUND_SECONDS
SANDBOX_KEY_SECONDS = 86_400  # how long the sandbox bank remembers an idempotency key
PROVIDER_SLOTS = variables.PROVIDER_SLOTS
CAPTURE_SLOTS = variables.CAPTURE_SLOTS
PUMP_SLOTS = variables.PUMP_SLOTS
PASSWORD_SLOTS = variables.PASSWORD_SLOTS
WEB_ADDRESS = variables.WEB_ADDRESS
WEB_CONCURRENCY = variables.WEB_CONCURRENCY  # web processes; 0 means one per core
WEBHOOK_SLOTS = variables.WEBHOOK_SLOTS
WEBHOOK_SOURCE_ADDRESSES = variables.WEBHOOK_SOURCE_ADDRESSES
WEBHOOK_RETENTION = timedelta(days=variables.WEBHOOK_RETENTION_DAYS)
API_CALL_RETENTION = timedelta(days=variables.API_CALL_RETENTION_DAYS)
PERSON_RETENTION = timedelta(days=variables.PERSON_RETENTION_DAYS)  # counted from a person's last order
ERASURES_FILE = variables.ERASURES_FILE
DATABASE_RESTORED = variables.DATABASE_RESTORED
METRICS_TOKEN = variables.METRICS_TOKEN
SENTRY_DSN = variables.SENTRY_DSN
TRACES = bool(variables.OTEL_EXPORTER_OTLP_ENDPOINT)  # OpenTelemetry reads its variables directly
PROBE_HOST, PROBE_PORT = variables.PROBE_HOST, variables.PROBE_PORT

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
    "portal.views.form_addresses.FormAddressMiddleware",
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
TRUSTED_PROXY_COUNT = variables.TRUSTED_PROXY_COUNT
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

_DATABASE = connections.connection_settings(variables.DATABASE_URL)
_POOL_SIZE = variables.DATABASE_POOL  # 0: no pool; each thread then opens a connection when it needs one
_POOL = {"min_size": 1, "max_size": _POOL_SIZE, "timeout": 5} if _POOL_SIZE else False
# After the fifth use of a prepared statement on a connection, PostgreSQL reuses its plan. This halves the CPU
# time of the statement. Turn this off if a transaction pooler does not support prepared statements.
_IS_PREPARED = variables.DATABASE_PREPARE
_PREPARING = {"server_side_binding": True, "prepare_threshold": 5} if _IS_PREPARED else {}
# Read very large numbers in JSON, for example 1e30 in a merchant's custom data, as floats. By default, psycopg reads
# them as integers that are too large to be written as JSON again (rule create.custom_data).
set_json_loads(orjson.loads)
DATABASES = {
    "default": {
        **_DATABASE,
        "ENGINE": "django.db.backends.postgresql",
        "CONN_HEALTH_CHECKS": True,  # a request then survives the failure of a pooled connection
        "DISABLE_SERVER_SIDE_CURSORS": True,  # PgBouncer can run each statement on a different connection
        "OPTIONS": {**_DATABASE["OPTIONS"], "pool": _POOL, **_PREPARING},
    }
}
_REPLICA = connections.connection_settings(variables.DATABASE_REPLICA_URL)
if _REPLICA:  # rules replica.*: only code that uses config.lib.database.replica reads from the replica
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
                "reconnect_timeout": 5,  # seconds; after that, the pool connects only when a thread asks
                "connection_class": bounded_connection.BoundedConnection,
            },
        },
    }
# The role that `migrate` uses if the service's own role does not own the tables.
DATABASE_OWNER = connections.connection_settings(variables.DATABASE_OWNER_URL)
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
PASSWORD_RESET_TIMEOUT = 3600  # how many seconds an emailed password-reset link works
ACCOUNT_ADAPTER = "portal.accounts.login.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = "TEST · " if SANDBOX else ""
ACCOUNT_RATE_LIMITS = False  # portal.accounts.login_limits counts instead; its rows survive a cache flush
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
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300  # how many seconds a reauthentication is valid
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "portal_home"
SESSION_ENGINE = "portal.accounts.session_store"
SESSION_SERIALIZER = "config.lib.crypto.SessionSerializer"
SESSION_COOKIE_AGE, SESSION_LONGEST = 15 * 60, 12 * 3600  # seconds after the last request, and in total
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
SECOND_FACTOR_REQUIRED = variables.SECOND_FACTOR_REQUIRED  # whether all people need one
MFA_ADAPTER = "portal.accounts.login.MfaAdapter"
MFA_ALLOW_UNVERIFIED_EMAIL = True  # people join through an emailed link, which proves their address
MFA_FORMS = {
    "authenticate": "portal.accounts.login_forms.SecondFactorForm",
    "reauthenticate": "portal.accounts.login_forms.SecondFactorAgainForm",
    "authenticate_webauthn": "portal.accounts.passkey_forms.PasskeyForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "required"  # makes a passkey count as two factors
MFA_RATE_LIMITS = False  # portal.accounts.login_limits counts attempts instead, as for passwords
MFA_TOTP_ISSUER = "Merchant Checkout" + (" (test)" if SANDBOX else "")
MFA_TOTP_TOLERANCE = 1  # how wrong a phone's clock can be, in steps of half a minute
LIVE_PORTAL_URL = variables.LIVE_PORTAL_URL  # address of the other environment's portal
SANDBOX_PORTAL_URL = variables.SANDBOX_PORTAL_URL

# --- API -------------------------------------------------------------------------------------------------

OAUTH2_PROVIDER_APPLICATION_MODEL = "portal.ApiClient"
KEYS_RECORDED_BY = "portal.audit.record_key_action"  # the function that records what an API key has changed
OPERATORS_RECORDED_BY = "portal.operator_changes"  # the module that records operators' changes to a merchant
DISCREPANCIES_DESCRIBED_BY = "portal.backoffice.cases"  # the module that names a discrepancy's order
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
    "reads": variables.LIMIT_READS,
    "creates": variables.LIMIT_CREATES,
    "verbs": variables.LIMIT_VERBS,  # capture and cancel
    "url_checks": "30/minute",  # per merchant: each check of a webhook address queries name servers
    "test_events": "60/hour",  # per merchant: each one is a POST to the merchant's endpoint
    "csp_reports": "30/minute",  # per network: each one is a request from a browser, with up to 20 reports
    "refusals_listed": "10/minute",  # entries per key and error code in the portal's log of requests
    "token_failures": variables.LIMIT_TOKEN_FAILURES,
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

REDIS_URL = variables.REDIS_URL
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
# A lost task does no harm, because a later run finds the same rows. Redis therefore does not keep a copy of a
# task that a worker has taken. With late acknowledgement, a worker would end if Redis failed during a task.
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
EMAIL_HOST = variables.EMAIL_HOST
EMAIL_PORT = variables.EMAIL_PORT
EMAIL_HOST_USER = variables.EMAIL_HOST_USER
EMAIL_HOST_PASSWORD = variables.EMAIL_HOST_PASSWORD
EMAIL_USE_TLS = variables.EMAIL_USE_TLS
EMAIL_TIMEOUT = 5  # seconds to wait for each response of the mail server
DEFAULT_FROM_EMAIL = variables.DEFAULT_FROM_EMAIL
OPERATORS = variables.OPERATORS
SUPPORT_EMAIL = variables.SUPPORT_EMAIL or [*OPERATORS, DEFAULT_FROM_EMAIL][0]  # where merchants write to

# --- Logs: config/logs.py -----------------------------------------------------------------------------------

LOGGING = logs.configure(in_words=LOCAL)
