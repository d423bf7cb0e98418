"""A split order as its group link shows it, and the reason why a share could not be taken."""

from dataclasses import dataclass

from django.urls import reverse

from checkout.models import Checkout
from hosted_page.payment_target import lead_name


@dataclass(frozen=True)
class Group:
    checkout: Checkout
    token: str

    @property
    def name(self) -> str:
        """Name of the lead."""
        return lead_name(self.checkout)

    def path(self, step: str = "") -> str:
        """Return the path of the group page, or of one of its steps."""
        return reverse(f"group{'_' if step else ''}{step}", args=[self.token])

    def share_path(self, position: int) -> str:
        """Return the path of the share at this position."""
        return reverse("group_share", args=[self.token, position])


@dataclass(frozen=True)
class TakeRefusal:
    """The reason why a share was not taken.

    - `kind`: "taken" (the share is not free), "name" (a name is missing), "items" (no such units can be taken),
      "show" (the person only asked for the sum) or "limit" (the network has taken too many shares)
    - `position`: the position of the share
    - `typed`: the name that the person typed
    - `units`: the units that the person chose
    """

    kind: str = ""
    position: int = 0
    typed: str = ""
    words: str = ""
    status: int = 200
    title: str = ""
    units: tuple[int, ...] = ()


NO_REFUSAL = TakeRefusal()
