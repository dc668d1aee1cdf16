"""A memory is data that anyone may have written: shown as a page, it stays data."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.rendering.html import safe_html

SHOWN = (
    "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code hr br em strong s a "
    "table thead tbody tr th td"
)
ELEMENTS = frozenset(SHOWN.split())
ATTRIBUTES = {"a": {"href", "rel", "title"}, "code": {"class"}, "ol": {"start"}}


class Elements(HTMLParser):
    """What a browser would build: elements with their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text += data


def assert_safe(page: str) -> Elements:
    """Only known elements, with known attributes, and links to the web or to mail."""
    elements = Elements(page)
    for tag, attributes in elements.found:
        assert tag in ELEMENTS
        assert set(attributes) <= ATTRIBUTES.get(tag, set())
        if tag == "a":
            assert (attributes["href"] or "").lower().startswith(("http://", "https://", "mailto:"))
            assert attributes["rel"] == "noopener noreferrer"
    return elements


HOSTILE = [
    "<script>alert(1)</script>",
    "a <b onclick=alert(1)>b</b> <img src=x onerror=alert(1)>",
    "<style>*{display:none}</style>\n\n<iframe src=//evil></iframe>",
    "<!-- --><svg/onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](vbscript:x)",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    "[x](other.html)",
    "[x][1]\n\n[1]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "<data:text/html,x>",
    '![a"onerror=alert(1)](https://evil.example/x.png "t\\"onerror=x")',
    "![x](data:image/svg+xml;base64,AAAA)",
    "![x](javascript:alert(1))",
    '[x](https://a.example/"onmouseover=alert(1))',
    '```"onload=alert(1)\n</code><script>\n```',
    "`</code><script>alert(1)</script>`",
    "|<script>|b|\n|:-|-:|\n|<i onclick=x>|`<b>`|",
    "[![x](https://a.example/i.png)](javascript:alert(1))",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "</pre></p></article><script>alert(1)</script>",
]


def test_hostile_content_becomes_harmless_elements() -> None:
    """No script, no handler, no style, nothing that is loaded, no link to anywhere but the web."""
    for markdown in HOSTILE:
        assert_safe(safe_html(markdown))


def test_raw_html_is_shown_as_text() -> None:
    """What somebody wrote is seen, not obeyed and not hidden."""
    for markdown in ("<script>alert(1)</script>", "<b>x</b>", "<!-- hidden -->"):
        assert Elements(safe_html(markdown)).text.strip() == markdown


def test_a_link_that_leads_elsewhere_stays_markdown() -> None:
    """A reader sees where it would have gone."""
    for url in ("javascript:alert(1)", "data:text/html,x", "file:///x", "x.md"):
        assert safe_html(f"[x]({url})") == f"<p>[x]({url})</p>\n"


def test_links_to_the_web_and_to_mail_work() -> None:
    """They are links, and tell the other side nothing; an image becomes one, and is not loaded."""
    rel = 'rel="noopener noreferrer"'
    assert safe_html("[a](https://a.example) <http://b.example> <c@d.example>") == (
        f'<p><a href="https://a.example" {rel}>a</a> '
        f'<a href="http://b.example" {rel}>http://b.example</a> '
        f'<a href="mailto:c@d.example" {rel}>c@d.example</a></p>\n'
    )
    page = assert_safe(safe_html("![a cat](https://a.example/cat.png)"))
    assert page.found[1][1]["href"] == "https://a.example/cat.png"


def test_tasks_have_boxes() -> None:
    """In lists of both kinds, and nowhere else."""
    html = safe_html("- [ ] milk\n- [x] tea\n\n[ ] no\n\n1. [X] a\n\n2. b [ ] c\n")
    assert [html.count(box) for box in ("☐ milk", "☑ tea", "☑ a", "[ ] no", "b [ ] c")] == [1] * 5


def test_markdown_is_rendered() -> None:
    """Headings, emphasis, lists, code and tables are what they are in CommonMark."""
    page = safe_html(
        "# A\n\n*b* **c** ~~d~~ `e`\n\n1. f\n\n> g\n\n```py\nh\n```\n\n|i|\n|:-|\n|j|\n"
    )
    tags = " ".join(tag for tag, _ in assert_safe(page).found)
    table = "table thead tr th tbody tr td"
    assert tags == f"h1 p em strong s code ol li blockquote p pre code {table}"


def test_invisible_characters_are_marked() -> None:
    """In texts and in addresses."""
    page = safe_html("gnp.\u202eexe [a](https://a.example/\u202e)")
    assert "\u202e" not in page
    assert "‹U+202E›" in page


def test_what_is_too_long_to_render_stands_as_it_is() -> None:
    """Nothing of it is lost, and it is as safe."""
    markdown = "# <script>alert(1)</script>\n" * 10_000
    page = assert_safe(safe_html(markdown))
    assert page.found == [("pre", {})]
    assert page.text == f"{markdown}\n"


@given(st.text(alphabet="ab <>&\"'`*_[]()!:/\\#-|~\n\tjx;=1.\0", max_size=200))
def test_any_text_is_safe(markdown: str) -> None:
    """No combination of markdown's and HTML's own signs opens a way out."""
    assert_safe(safe_html(markdown))


@given(st.sampled_from(HOSTILE), st.text(max_size=20), st.sampled_from(HOSTILE))
def test_hostile_texts_are_safe_in_each_other(before: str, between: str, after: str) -> None:
    """Nesting one attack in another opens no way out."""
    assert_safe(safe_html(before + between + after))
    assert_safe(safe_html(f"> - {before}\n{between}\n[{after}](https://x.example)"))
