"""Actors in words ("By key …"): the people and keys that a page names are looked up all together."""

from collections import defaultdict
from uuid import UUID

from payments.models import Merchant
from portal.models import ApiClient, User
from portal.orders.search import parse_uuid


class Names:
    """The names of actors: `ask` for each while writing texts, `fill` once, then `put` them into the texts."""

    def __init__(self, merchant: Merchant) -> None:
        self._merchant = merchant
        self._asked: set[str] = set()
        self._known: dict[str, str] = {"pump": "By itself"}

    def ask(self, actor: str) -> str:
        """Return a placeholder for the actor's name, which `put` replaces."""
        self._asked.add(actor)
        return f"{{{actor}}}"

    def fill(self) -> None:
        """Look up all names that have been asked for."""
        ids: dict[str, list[UUID]] = defaultdict(list)
        for actor in self._asked:
            kind, _, text = actor.partition(":")
            uuid = parse_uuid(text)
            if uuid:
                ids[kind].append(uuid)
        if ids["client"]:
            for client in ApiClient.objects.filter(merchant=self._merchant, pk__in=ids["client"]):
                self._known[f"client:{client.pk}"] = f"By key “{client.name}”"
        if ids["user"]:
            for user in User.objects.filter(pk__in=ids["user"]):
                self._known[f"user:{user.pk}"] = "By our support" if user.is_staff else f"By {user.email}"

    def put(self, text: str) -> str:
        """Return the text with names instead of the placeholders."""
        for actor in self._asked:
            kind = actor.partition(":")[0]
            other = {"customer": "By the customer", "user": "By somebody", "client": "By a key"}
            text = text.replace(f"{{{actor}}}", self._known.get(actor, other.get(kind, "By itself")))
        return text
