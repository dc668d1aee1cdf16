"""Whether a line is still there as tokens, where a formatter has set it anew.

What formatters change counts for nothing: line breaks, the kind of quotes, a comma before a closing
bracket, brackets that only let a line go on, and comments for linters; in Python also type
annotations, where one of the two has none, and in Go `interface{}` is `any`. Everything else is
compared token by token: no likeness is ever accepted. So `f(a, b)  # noqa` is

    f(
        a,
        b,
    )

and `x = (1,)` is not `x = (1)`, nor is `return x` the two lines `return` and `x`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aiaml_server.toolsets.citations.sources import Source

_PYTHON = frozenset({".py", ".pyi"})
_SCRIPT = frozenset({".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"})
_GO = ".go"
_IN_BRACKETS = _PYTHON | {".go", ".kt", ".kts", ".swift", ".scala"}
"""Languages in which a line ends a statement, except within brackets."""
_ANYWHERE = _SCRIPT | {
    *(".java", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rs", ".php", ".dart"),
    *(".css", ".scss", ".less", ".json"),
}
"""Languages in which lines may break nearly anywhere."""

_STRING = r"""[rRbBfFuU]{0,2}(?:"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)|`(?:[^`\\]|\\.)*`?"""
_REST = (
    r"(?P<joined>\\\r?\n)|\w+|\+\+|--|&&|\|\||=>|->|<-|[=!]==?|[<>]=|\*\*=?|//=?|<<|>>|::|\.\.\."
    r"|\?\.|\?\?|:=|[-+*/%&|^@]=|\S"
)
_TRIPLE = r"""[rRbBfFuU]{0,2}(?:"{3}(?:(?!"{3}).)*"{3}|'{3}(?:(?!'{3}).)*'{3})"""
_HASHES = re.compile(rf"(?P<comment>\#[^\n]*)|{_TRIPLE}|{_STRING}|{_REST}", re.DOTALL)
_SLASHES = re.compile(
    rf"(?P<comment>//[^\n]*|/\*(?:(?!\*/).)*(?:\*/)?)|{_STRING}|{_REST}", re.DOTALL
)
_QUOTED = re.compile(r"""([a-zA-Z]{0,2})(["'])(?!\2\2)(.*)\2""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
FOR_LINTERS = re.compile(
    r"(?:#|//|/\*)[ \t]*(?:noqa|type:[ \t]*ignore|nosec|nolint|eslint|@ts-|prettier-ignore"
    r"|biome-ignore|istanbul|c8 |v8 "
    r"|(?:pragma|pylint|pyright|mypy|ruff|flake8|isort|fmt|yapf|tslint|lint)[ \t]*:)[^\n]*",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")

_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = frozenset(_OPEN.values())
_GOES_ON_AFTER = {
    *("(", "[", "{", ",", ".", "+", "-", "*", "/", "%", "|", "&", "==", "!=", "<=", ">=", "<"),
    *(">", "=", "and", "or", "not", "in", "is"),
}
_GOES_ON_WITH = {
    *(")", "]", "}", ",", ".", "/", "%", "|", "&", "==", "!=", "<=", ">=", "and", "or", "is"),
}
"""What no statement ends or begins with, so that a line breaks within one there."""
_ENDS_EARLY = {"return", "throw", "break", "continue", "yield", "async", "++", "--"}
"""What ends a statement of JavaScript where a line ends behind it (ECMA-262, 12.10)."""
_MAY_BE_IN_BRACKETS = {"=", "return", "in", "if", "elif", "while", "assert", "import"}
SCANNED = 200  # units of work for each character of which tokens are made
_FEWEST = 3  # tokens that are looked for; fewer tell too little
_AROUND = 3  # lines that are looked at beside those with the words
_MOST_LINES = 80  # that a statement is followed over


class Token(NamedTuple):
    """A word, a sign, a string or a comment.

    Attributes:
        text: as it counts: strings in double quotes, comments without what is for linters.
        line: the number of its line.
        begins: whether it is the first of its line.
    """

    text: str
    line: int
    begins: bool


def reformatted(
    source: Source,
    wanted: Sequence[str],
    before: str | None,
    after: str | None,
    others: Sequence[int] = (),
) -> list[tuple[int, int]]:
    """Return where some lines stand, set anew: the first line's number and how many there are.

    Args:
        source: the file.
        wanted: the lines.
        before: the line that stood before them, if it is known.
        after: the line that stood behind them.
        others: where such lines stand that were not set anew, and are not meant.
    """
    if source.kind not in _IN_BRACKETS and source.kind not in _ANYWHERE:
        return []
    size = sum(map(len, wanted)) + len(before or "") + len(after or "")
    for first, last in ((None, None), (before, after), (None, after), (before, None)):
        if (first, last) != (None, None) and not (first or last):
            continue
        source.spend(SCANNED * size)
        asked = _Asked.of(source.kind, wanted, first, last)
        found = set(asked.places(source)) if asked else set()
        if left := sorted(each for each in found if each[0] not in others):
            return left
    if source.kind not in _PYTHON:
        return []
    source.spend(SCANNED * size)
    asked = _Asked.of(source.kind, wanted, None, None)
    return list(asked.annotated(source)) if asked else []


class _Asked(NamedTuple):
    """Lines that are looked for.

    Attributes:
        kind: the file's ending.
        tokens: of the lines and those around them.
        start: the index of the first token of the lines themselves.
        end: the index behind their last one.
    """

    kind: str
    tokens: list[Token]
    start: int
    end: int

    @classmethod
    def of(
        cls, kind: str, wanted: Sequence[str], before: str | None, after: str | None
    ) -> _Asked | None:
        """Take the lines, and what is known of those around; None where they say too little."""
        lines = [*([before] if before else []), *wanted, *([after] if after else [])]
        tokens = _normal(scanned("\n".join(lines), 1, kind), kind)
        first = 2 if before else 1
        own = [at for at, each in enumerate(tokens) if first <= each.line < first + len(wanted)]
        words = [each.text for each in tokens if _WORD.match(each.text)]
        if not own or len(tokens) < _FEWEST or (len(words) < _FEWEST and (before or after)):
            return None
        return cls(kind, tokens, own[0], own[-1] + 1)

    def places(self, source: Source) -> Iterator[tuple[int, int]]:
        """Yield where the lines stand in a file."""
        texts = [each.text for each in self.tokens]
        for first, last in source.spans(counting("\n".join(texts), self.kind)):
            found = _normal(source.tokens(max(1, first - _AROUND), last + _AROUND), self.kind)
            for at in _found(texts, found):
                if self._fits(found, at):
                    own = found[at + self.start : at + self.end]
                    yield own[0].line, own[-1].line - own[0].line + 1

    def _fits(self, found: Sequence[Token], at: int) -> bool:
        """Say whether what was found begins and ends as lines do, and breaks where it may."""
        end = at + len(self.tokens)
        if self.start == 0 and not found[at].begins:
            return False
        if self.end == len(self.tokens) and end < len(found) and not found[end].begins:
            return False
        there = found[at:end]
        return _breaks_well(self.kind, there, self.tokens) and _breaks_well(
            self.kind, self.tokens, there
        )

    def annotated(self, source: Source) -> Iterator[tuple[int, int]]:
        """Yield where a statement of Python stands with type annotations, or without its own."""
        texts = [each.text for each in self.tokens]
        bare = [each.text for each in _unannotated(self.tokens)]
        named = (
            texts.index("def") + 2 if "def" in texts[:2] else bare.index("=") if "=" in bare else 0
        )
        if not 0 < named <= len(bare) >= _FEWEST or texts[-1] == ",":
            return
        lines = min(2 * len(texts), _MOST_LINES)
        for first, _ in source.spans(counting("\n".join(bare[:named]), self.kind)):
            line = [each.text for each in source.tokens(first, first)]
            if line[:named] != bare[:named] or line[named : named + 1] not in (["="], [":"], ["("]):
                continue
            near = _normal(source.tokens(first, first + lines), self.kind)
            now = next(_statements(near), [])
            bare_now = _unannotated(now)
            is_bare = bare != texts and _begins_with(now, bare)
            is_annotated = bare == texts and len(bare_now) < len(now)
            if is_bare or (is_annotated and _begins_with(bare_now, texts)):
                yield first, 1


def _begins_with(statement: Sequence[Token], texts: Sequence[str]) -> bool:
    """Say whether a statement's first lines have some tokens, and no more."""
    size = len(texts)
    is_line = len(statement) == size or (len(statement) > size and statement[size].begins)
    return is_line and [each.text for each in statement[:size]] == texts


def counting(text: str, kind: str) -> list[str]:
    """Return the words of a text, but for those in whose place others may stand."""
    words = _WORD.findall(text)
    anew = _SPELLED_ANEW if kind in _PYTHON else {"any", "interface"} if kind == _GO else ()
    return [each for each in words if each not in anew]


def scanned(text: str, line: int, kind: str) -> list[Token]:
    """Return a text's tokens, of which the first line has the given number."""
    tokens: list[Token] = []
    begins, at = True, 0
    for found in (_HASHES if kind in _PYTHON else _SLASHES).finditer(text):
        newlines = text.count("\n", at, found.start())
        line, begins, at = line + newlines, begins or newlines > 0, found.start()
        said = found[0]
        if found["joined"]:
            line, at = line + 1, found.end()
            continue
        if found["comment"]:
            said = _comment(said)
        elif '"' in said or "'" in said:
            said = _string(said, kind)
        if said:
            tokens.append(Token(said, line, begins))
            begins = False
    return tokens


def _comment(text: str) -> str:
    """Return a comment without what is in it for linters."""
    parts = re.split(r"[ \t](?=#|//)", text)
    kept = [" ".join(each.split()) for each in parts if not FOR_LINTERS.match(each)]
    return " ".join(each for each in kept if each)


def _string(text: str, kind: str) -> str:
    """Return a string in double quotes, where its language makes no difference between them."""
    found = _QUOTED.fullmatch(text)
    if not found or kind not in _PYTHON | _SCRIPT:
        return text
    prefix, _, inner = found.groups()
    said = _ESCAPED.sub(lambda each: each[1] if each[1] in "\"'" else each[0], inner)
    return f'{prefix.lower().replace("u", "")}"{said}"'


def _normal(tokens: Sequence[Token], kind: str) -> list[Token]:
    """Return tokens without commas before a closer, and brackets that only let a line go on.

    In Python a type is the same however it is spelled, and so is `interface{}` in Go.
    """
    tokens = _without_brackets(_without_commas(tokens))
    if kind == _GO:
        return _with_any(tokens)
    return _spelled_today(tokens) if kind in _PYTHON else tokens


def _with_any(tokens: Sequence[Token]) -> list[Token]:
    """Spell the empty interface as Go does since 1.18, which calls both identical."""
    kept: list[Token] = []
    for token in tokens:
        kept.append(token)
        if [each.text for each in kept[-3:]] == ["interface", "{", "}"]:
            kept[-3:] = [kept[-3]._replace(text="any")]
    return kept


def _spelled_today(tokens: Sequence[Token]) -> list[Token]:
    """Spell types as PEP 585 and 604: `typing.Optional[List[int]]` is `list[int] | None`."""
    kept: list[Token] = []
    opened: list[str] = []  # what stands before each bracket that is open
    for token, follows in zip(tokens, [*(each.text for each in tokens[1:]), ""], strict=True):
        text = token.text
        before = kept[-1].text if kept else ""
        if text == "." and before == "typing":
            kept.pop()
        elif text == "[":
            opened.append(before)
            if before in _UNIONS:
                kept.pop()
            else:
                kept.append(token)
        elif text == "]" and opened and (union := opened.pop()) in _UNIONS:
            none = [token._replace(text=each) for each in ("|", "None")]
            kept += none if union == "Optional" else []
        elif text == "," and opened[-1:] == ["Union"]:
            kept.append(token._replace(text="|"))
        else:
            is_built_in = follows == "[" and text in _BUILT_IN
            kept.append(token._replace(text=text.lower()) if is_built_in else token)
    return kept


_UNIONS = ("Optional", "Union")
_BUILT_IN = ("List", "Dict", "Tuple", "Set", "FrozenSet", "Type")
_SPELLED_ANEW = {"typing", "None", *_UNIONS, *_BUILT_IN, *map(str.lower, _BUILT_IN)}


def _without_commas(tokens: Sequence[Token]) -> list[Token]:
    kept: list[Token] = []
    opened: list[tuple[bool, int]] = [(False, 0)]  # whether one element may have a comma; commas
    for token in tokens:
        text = token.text
        if text in _OPEN:
            previous = kept[-1].text if kept else ""
            is_call = bool(_WORD.match(previous[-1:])) or previous in (")", "]")
            opened.append((text == "{" or is_call == (text == "("), 0))
        elif text in _CLOSE:
            may, commas = opened.pop() if len(opened) > 1 else opened[0]
            if kept and kept[-1].text == "," and (may or commas > 1):
                kept.pop()
        elif text == ",":
            may, commas = opened.pop()
            opened.append((may, commas + 1))
        kept.append(token)
    return kept


def _without_brackets(tokens: list[Token]) -> list[Token]:
    """Take out pairs such as those of `x = (`, the rest on lines of its own, and `)`."""
    gone: set[int] = set()
    within: set[int] = set()
    opened: list[tuple[int, bool]] = []  # each with whether it has a comma
    for at, (text, *_) in enumerate(tokens):
        if text in _OPEN:
            opened.append((at, False))
        elif text == "," and opened:
            opened[-1] = (opened[-1][0], True)
        elif text in _CLOSE and opened:
            begin, has_comma = opened.pop()
            if _lets_go_on(tokens, begin, at, has_comma=has_comma):
                gone |= {begin, at}
                within |= set(range(begin, at))
    return [
        each._replace(begins=False) if at in within else each
        for at, each in enumerate(tokens)
        if at not in gone
    ]


def _lets_go_on(tokens: Sequence[Token], begin: int, end: int, *, has_comma: bool) -> bool:
    if tokens[begin].text != "(" or not 0 < begin < end - 1:
        return False
    previous = tokens[begin - 1].text
    if previous not in _MAY_BE_IN_BRACKETS or (has_comma and previous != "import"):
        return False
    if not (tokens[begin + 1].begins and tokens[end].begins):
        return False
    return end + 1 == len(tokens) or tokens[end + 1].begins or tokens[end + 1].text in ":,)]};"


def _unannotated(tokens: Sequence[Token]) -> list[Token]:
    """Return a statement of Python without its type annotations."""
    is_def = "def" in [each.text for each in tokens[:2]]
    kept: list[Token] = []
    depth = at = 0
    in_default = False
    while at < len(tokens):
        text = tokens[at].text
        depth -= text in _CLOSE
        if depth == 1 and text in ("=", ","):
            in_default = text == "="
        ends: tuple[str, ...] = ()
        if is_def and text == ":" and depth == 1 and not in_default:
            ends = (",", "=", ")")
        elif is_def and text == "->" and depth == 0:
            ends = (":",)
        elif not is_def and text == ":" and depth == 0 and _is_name(tokens[:at]):
            ends = ("=",)
        end = _behind(tokens, at + 1, ends) if ends else len(tokens)
        if end < len(tokens):
            at = end
            continue
        kept.append(tokens[at])
        depth += text in _OPEN
        at += 1
    return kept


def _is_name(tokens: Sequence[Token]) -> bool:
    """Say whether tokens are a name such as `self.limit`, and no word that opens a block."""
    text = " ".join(each.text for each in tokens)
    return re.fullmatch(r"\w+(?: \. \w+)*", text) is not None and text not in _OPENS_A_BLOCK


_OPENS_A_BLOCK = frozenset({"else", "try", "finally"})


def _behind(tokens: Sequence[Token], at: int, ends: Sequence[str]) -> int:
    """Return the index of the first of some texts outside of brackets; behind all if none is."""
    depth = 0
    while at < len(tokens) and (depth > 0 or tokens[at].text not in ends):
        depth += (tokens[at].text in _OPEN) - (tokens[at].text in _CLOSE)
        at += 1
    return at


def _statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the statements, each from a line's beginning to its end outside of brackets."""
    statement: list[Token] = []
    depth = 0
    for token in tokens:
        if token.begins and depth <= 0 and statement:
            yield statement
            statement, depth = [], 0
        statement.append(token)
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
    if statement:
        yield statement


def _found(wanted: Sequence[str], tokens: Sequence[Token]) -> Iterator[int]:
    """Yield at which indices some texts follow each other."""
    size = len(wanted)
    for at in range(len(tokens) - size + 1):
        if tokens[at].text == wanted[0] and all(
            tokens[at + k].text == wanted[k] for k in range(size)
        ):
            yield at


def _breaks_well(kind: str, there: Sequence[Token], then: Sequence[Token]) -> bool:
    """Say whether lines break where that changes nothing; where both do, it changes nothing."""
    depth = 0
    for at, token in enumerate(there):
        depth -= token.text in _CLOSE
        if at and token.begins and not then[at].begins:
            previous = there[at - 1].text
            if kind in _ANYWHERE:
                if previous in _ENDS_EARLY or token.text in ("++", "--"):
                    return False
            elif depth < 1 and previous not in _GOES_ON_AFTER and token.text not in _GOES_ON_WITH:
                return False
        depth += token.text in _OPEN
    return True
