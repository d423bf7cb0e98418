from django.contrib import admin

from config.lib.admin import ReadOnlyAdmin
from hosted_page.models import SignInCode


@admin.register(SignInCode)
class SignInCodeAdmin(ReadOnlyAdmin):
    list_display = ("id", "checkout", "tries", "created_at", "expires_at", "used_at")
    list_select_related = ("checkout",)
    search_fields = ("=checkout__id",)
    secret = ("phone", "code_digest", "browser_digest")
