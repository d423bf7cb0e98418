from django.contrib import admin
from oauth2_provider.models import AccessToken, Grant, IDToken, RefreshToken

from config.lib.admin import ReadOnlyAdmin
from portal.models import ApiClient, AuditEntry, Membership, User


@admin.register(User)
class UserAdmin(admin.ModelAdmin):
    list_display = ("email", "is_staff", "is_active", "date_joined", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email",)
    exclude = ("password",)
    readonly_fields = ("last_login", "date_joined")


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin):
    list_display = ("user", "merchant", "role")
    list_filter = ("role",)
    list_select_related = ("user", "merchant")
    search_fields = ("user__email", "merchant__name")


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "merchant", "user", "action", "request_id")
    list_select_related = ("merchant", "user")
    search_fields = ("action", "=request_id")


class ApiClientAdmin(ReadOnlyAdmin):
    list_display = ("name", "client_id", "merchant", "last_used_at", "revoked_at")
    list_select_related = ("merchant",)
    search_fields = ("=client_id", "merchant__name")
    secret = ("client_secret", "previous_secret")


class AccessTokenAdmin(ReadOnlyAdmin):
    list_display = ("id", "application", "scope", "created", "expires")
    list_select_related = ("application",)
    secret = ("token", "token_checksum")


# The library registers its models as writable; grants of people and refresh tokens do not exist here.
for unused in (Grant, IDToken, RefreshToken):
    admin.site.unregister(unused)
for model, shown in ((ApiClient, ApiClientAdmin), (AccessToken, AccessTokenAdmin)):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
    admin.site.register(model, shown)
