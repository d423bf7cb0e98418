from typing import Any

from django.core.management.base import BaseCommand

from checkout import states


class Command(BaseCommand):
    help = "Print the README's picture of the states, drawn from the table."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("stateDiagram-v2")
        self.stdout.write("    [*] --> created")
        for (origin, to), cause in states.ALLOWED.items():
            self.stdout.write(f"    {origin} --> {to}: {cause}")
        left = {origin for origin, _ in states.ALLOWED}
        for status in states.Status:
            if status not in left:
                self.stdout.write(f"    {status} --> [*]")
