import re
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.template import engines, loader
from django.template.backends.django import Template as DjangoTemplate
from django.template.backends.jinja2 import Template as Jinja2Template
from django.test import RequestFactory
from django.utils import translation
from jinja2 import Environment, UndefinedError

from config.lib.web import page_templates

NAMES_ONE = re.compile(rf"""(?:include|extends) *["'](?:{"|".join(page_templates.FOLDERS)})/""")


@pytest.fixture
def pages() -> Iterator[Environment]:
    with translation.override("en-gb"):
        yield page_templates.environment()


class TestTheTemplates:
    def test_of_payers_all_compile_with_jinja(self, pages: Environment) -> None:
        names = pages.list_templates()
        assert {name.partition("/")[0] for name in names} == set(page_templates.FOLDERS)
        for name in names:
            assert isinstance(loader.get_template(name), Jinja2Template)

    def test_of_all_other_pages_are_django_templates_without_jinja_includes(self) -> None:
        folder = settings.BASE_DIR / "templates"
        others = {path for path in folder.rglob("*.html") if path.parent.name not in page_templates.FOLDERS}
        for path in others:
            name = path.relative_to(folder).as_posix()
            assert isinstance(loader.get_template(name), DjangoTemplate)
            assert not NAMES_ONE.search(path.read_text()), name


class TestAPage:
    @pytest.mark.parametrize("text", ["{{ nobody }}", "{% if nobody %}{% endif %}", "{{ order.nobody }}"])
    def test_that_uses_an_undefined_variable_fails(self, pages: Environment, text: str) -> None:
        with pytest.raises(UndefinedError, match="nobody"):
            pages.from_string(text).render(order={"name": "A"})

    @pytest.mark.parametrize(
        "text",
        ["{{ name }}", "{% trans %}{{ name }}{% endtrans %}", "{% trans a=name %}{{ a }}{% endtrans %}"],
    )
    def test_escapes_user_input(self, pages: Environment, text: str) -> None:
        shown = pages.from_string(text).render(name="<script>\"'&")
        assert shown == "&lt;script&gt;&#34;&#39;&amp;"

    def test_keeps_the_tags_of_its_own_texts_unescaped(self, pages: Environment) -> None:
        page = pages.from_string(
            "{{ _('in <strong>5</strong> s.') }}{% trans n=n %}<b>{{ n }}</b> 5%{% endtrans %}"
        )
        assert page.render(n="<") == "in <strong>5</strong>\N{NO-BREAK SPACE}s.<b>&lt;</b> 5%"

    def test_has_the_language_of_each_request(self, pages: Environment) -> None:
        page = pages.from_string(
            "{{ get_language() }} {{ _('Phone') }}, {% trans shop=shop %}Hear from {{ shop }}?{% endtrans %}"
        )
        for _turn in range(2):
            assert page.render(shop="Acme") == "en-gb Phone, Hear from Acme?"
            with translation.override("fr"):
                french = page.render(shop="Acme")
            assert french.startswith("fr Mobile, ") and "Acme" in french and "Hear" not in french

    def test_has_one_token_for_all_its_forms(self, pages: Environment) -> None:
        request = RequestFactory().get("/pay")
        page = engines["jinja2"].from_string("{{ csrf_input }}{{ csrf_input }}").render({}, request)
        first, second = re.findall(r'<input type="hidden" name="csrfmiddlewaretoken" value="(\w{64})">', page)
        assert first == second and request.META["CSRF_COOKIE"]
