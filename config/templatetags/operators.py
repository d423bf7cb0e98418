"""The operators' menu beside the lists and rows of the admin, whose views know nothing of it."""

from typing import Any

from django import template

from config.operators import board, shell

register = template.Library()


@register.inclusion_tag("operators/_menu.html", takes_context=True)
def operators_menu(context: dict[str, Any]) -> dict[str, Any]:
    """Show the menu, with what waits, in one statement that reads open rows alone."""
    request = context["request"]
    waiting = board.count_waiting() if shell.may_look(request) else (0, 0)
    return {"menu": shell.menu(request, *waiting), "user": request.user}
