"""Django template tags for our scripts and style sheets: `{% script "js/portal.js" %}`."""

from django import template

from config.lib.web import static_files

register = template.Library()
register.simple_tag(static_files.script, name="script")
register.simple_tag(static_files.stylesheet, name="stylesheet")
register.simple_tag(lambda: static_files.script(static_files.HTMX), name="htmx_script")
