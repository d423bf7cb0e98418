"""What a payer types."""

from django import forms
from django.http import QueryDict

from checkout import splitting


class SplitForm(forms.Form):
    """All mine, or equally between 2 and 20 people."""

    split = forms.ChoiceField(choices=[("all", "all"), ("equal", "equal")])
    people = forms.IntegerField(required=False, min_value=2, max_value=splitting.MOST_PEOPLE)

    def __init__(self, typed: QueryDict, *, amount: int) -> None:
        super().__init__(typed)
        self.most = splitting.most_people(amount)

    def people_in_all(self) -> int | None:
        """Return how many share, 1 for all mine; None when what was typed makes no sense."""
        if not self.is_valid():
            return None
        if self.cleaned_data["split"] == "all":
            return 1
        people: int | None = self.cleaned_data["people"]
        return people if people is not None and people <= self.most else None
