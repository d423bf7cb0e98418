from django.contrib import admin

from config.lib.admin import ReadOnlyAdmin
from hosted_page.models import OptIn, OptInText, SignInCode, Text


@admin.register(SignInCode)
class SignInCodeAdmin(ReadOnlyAdmin):
    list_display = ("id", "subject", "tries", "created_at", "expires_at", "used_at")
    search_fields = ("=subject",)
    secret = ("phone", "code_digest", "browser_digest")


@admin.register(Text)
class TextAdmin(ReadOnlyAdmin):
    list_display = ("id", "kind", "checkout_uuid", "tries", "created_at", "sent_at")
    list_filter = ("kind",)
    search_fields = ("=checkout_uuid",)
    secret = ("phone", "number_range", "address_digest")


@admin.register(OptIn)
class OptInAdmin(ReadOnlyAdmin):
    list_display = ("id", "checkout_uuid", "placement", "text", "opted_in_at")
    list_select_related = ("text",)
    search_fields = ("=checkout_uuid",)
    secret = ("email", "email_digest")


@admin.register(OptInText)
class OptInTextAdmin(ReadOnlyAdmin):
    list_display = ("merchant", "version", "text", "created_at")
    list_select_related = ("merchant",)
