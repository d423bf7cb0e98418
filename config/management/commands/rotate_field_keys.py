"""`manage.py rotate_field_keys`: the earlier name of `rotate_keys`."""

from config.management.commands.rotate_keys import Command

__all__ = ["Command"]
