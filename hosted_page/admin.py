from django.contrib import admin

from config.lib.admin import ReadOnlyAdmin
from hosted_page.models import SignInCode


@admin.register(SignInCode)
class SignInCodeAdmin(ReadOnlyAdmin):
    list_display = ("id", "subject", "tries", "created_at", "expires_at", "used_at")
    search_fields = ("=subject",)
    secret = ("phone", "code_digest", "browser_digest")
