"""A memory is data that anyone may have written: shown as a page, it stays data."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.rendering.html import safe_html

SHOWN = (
    "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code hr br em strong s a "
    "table thead tbody tr th td small"
)
ELEMENTS = frozenset(SHOWN.split())
ATTRIBUTES = {"a": {"href", "rel"}, "code": {"class"}, "li": {"value"}, "p": {"class"}}


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


@pytest.mark.parametrize("markdown", HOSTILE)
def test_hostile_content_becomes_harmless_elements(markdown: str) -> None:
    """No script, no handler, no style, nothing that is loaded, no link to anywhere but the web."""
    assert_safe(safe_html(markdown))


@pytest.mark.parametrize(
    "markdown", ["<script>alert(1)</script>", "&lt;script&gt;", "<b>x</b>", "<!-- hidden -->"]
)
def test_raw_html_is_shown_as_the_text_it_is(markdown: str) -> None:
    """What somebody wrote is seen, not obeyed and not hidden."""
    assert Elements(safe_html(markdown)).text.strip() == markdown.replace("&lt;", "<").replace(
        "&gt;", ">"
    )


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "file:///x", "x.md"])
def test_a_link_that_leads_elsewhere_stands_as_its_markdown(url: str) -> None:
    """A reader sees where it would have gone."""
    assert safe_html(f"[x]({url})") == f"<p>[x]({url})</p>\n"


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[x]()", "[x]()"),
        ("[]()", "[]()"),
        ("[*x*](<>)", "[<em>x</em>](&lt;&gt;)"),
        ('[x]("t")', "[x](&quot;t&quot;)"),
        ("![x]()", "[image: x]"),
        ("[![x]()](https://a.example)", None),
        ("[![x](https://a.example)]()", None),
    ],
)
def test_a_link_without_an_address_is_none(markdown: str, shown: str | None) -> None:
    """A browser would take it for the page that it stands on."""
    page = safe_html(markdown)
    assert_safe(page)
    assert shown is None or page == f"<p>{shown}</p>\n"


def test_links_to_the_web_and_to_mail_work() -> None:
    """Good links are links, tell the other side nothing, and say where they lead."""
    rel = 'rel="noopener noreferrer"'
    assert safe_html("[a](https://a.example 't') <http://b.example> <c@d.example>") == (
        f'<p><a href="https://a.example" {rel}>a</a> '
        "<small>(https://a.example &quot;t&quot;)</small> "
        f'<a href="http://b.example" {rel}>http://b.example</a> '
        f'<a href="mailto:c@d.example" {rel}>c@d.example</a></p>\n'
    )


def test_an_address_is_encoded_in_the_link_and_readable_beside_it() -> None:
    """A browser gets what it understands, a person what was written."""
    page = safe_html("[a](<https://ä.example/ö \u202e>)")
    ((_, attributes),) = assert_safe(page).found[1:2]
    assert attributes["href"] == "https://xn--4ca.example/%C3%B6%20%E2%80%AE"
    assert "(https://ä.example/ö ‹U+202E›)" in page


def test_an_image_becomes_a_link_and_is_not_loaded() -> None:
    """Showing a memory asks nobody's server for anything."""
    page = safe_html(
        "![a cat](https://a.example/cat.png) [![dog](https://b.example/dog.png)](https://c.example)"
    )
    links = [attributes["href"] for tag, attributes in assert_safe(page).found if tag == "a"]
    assert links == ["https://a.example/cat.png", "https://c.example"]
    assert Elements(page).text == (
        "[image: a cat] (https://a.example/cat.png) "
        "[image: dog] (https://b.example/dog.png) (https://c.example)\n"
    )


def test_markdown_is_rendered() -> None:
    """Headings, emphasis, lists, code and tables are what they are in CommonMark."""
    page = safe_html(
        "# A\n\n*b* **c** ~~d~~ `e`\n\n1. f\n\n> g\n\n```py\nh\n```\n\n|i|\n|-|\n|j|\n"
    )
    tags = " ".join(tag for tag, _ in assert_safe(page).found)
    table = "table thead tr th tbody tr td"
    assert tags == f"h1 p em strong s code ol li blockquote p p pre code {table}"


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "![",
        "[a](",
        "*a **a ",
        "`a``",
        "<",
        "&",
        ">",
        "- ",
        "_a__b",
        "|a",
        "~~a~",
        "[a]: b\n",
        "\\",
        "<https://",
        "[a](https://b)",
        "![](https://a)",
        "> - ",
        "# ",
        "\t",
        "\0",
    ],
)
def test_text_made_to_be_slow_is_shown_in_time(piece: str) -> None:
    """Neither deep nesting nor a megabyte of half-open brackets keeps a reader waiting."""
    for size in (60_000, 1_000_000):
        assert_safe(safe_html(piece * (size // len(piece))))


def test_what_is_too_long_to_render_stands_as_it_is() -> None:
    """Nothing of it is lost, it is as safe, and a sentence says so."""
    markdown = "# <script>alert(1)</script>\n" * 10_000
    page = safe_html(markdown)
    assert assert_safe(page).found == [("p", {"class": "aside"}), ("pre", {})]
    said = (
        "Shown as it stands: it is longer than 32 KiB, or has more than 4,000 lines and brackets.\n"
    )
    assert Elements(page).text == f"{said}{markdown}\n"


@given(st.text(alphabet="ab <>&\"'`*_[]()!:/\\#-|~\n\tjx;=1.\0", max_size=200))
def test_any_text_is_safe(markdown: str) -> None:
    """No combination of markdown's and HTML's own signs opens a way out."""
    assert_safe(safe_html(markdown))


@given(st.sampled_from(HOSTILE), st.text(max_size=20), st.sampled_from(HOSTILE))
def test_hostile_texts_are_safe_in_each_other(before: str, between: str, after: str) -> None:
    """Nesting one attack in another opens no way out."""
    assert_safe(safe_html(before + between + after))
    assert_safe(safe_html(f"> - {before}\n{between}\n[{after}](https://x.example)"))
