"""Actors in words ("By key …"): the people and keys that a page names are looked up all together."""

from collections.abc import Collection

from payments.models import Merchant
from portal.models import ApiClient, User
from portal.orders.search import parse_uuid

UNKNOWN = {"customer": "By the customer", "user": "By somebody", "client": "By a key"}


def names(merchant: Merchant, actors: Collection[str]) -> dict[str, str]:
    """Return the name of each actor, as a sentence without its full stop."""
    split = {actor: actor.partition(":")[::2] for actor in actors}
    found = {actor: UNKNOWN.get(kind, "By itself") for actor, (kind, _) in split.items()}
    clients = [uuid for kind, text in split.values() if kind == "client" and (uuid := parse_uuid(text))]
    users = [uuid for kind, text in split.values() if kind == "user" and (uuid := parse_uuid(text))]
    for client in ApiClient.objects.filter(merchant=merchant, pk__in=clients):
        found[f"client:{client.pk}"] = f"By key “{client.name}”"
    for user in User.objects.filter(pk__in=users):
        found[f"user:{user.pk}"] = "By our support" if user.is_staff else f"By {user.email}"
    return found
