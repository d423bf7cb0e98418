"""The operators' form for a person's role at a merchant."""

from typing import Any

from config.lib.admin.readonly import ChangesForm
from portal.models import Membership

SECOND_ROLE = "This user has a role at this merchant already. Change it on the membership’s page."


class MembershipForm(ChangesForm):
    """Refuses a second role of a person at the same merchant."""

    def clean(self) -> dict[str, Any]:
        typed = super().clean()
        merchant, user = typed.get("merchant"), typed.get("user")
        is_new = self.instance._state.adding
        if is_new and Membership.objects.filter(merchant=merchant, user=user).exists():
            self.add_error("user", SECOND_ROLE)
        return typed
