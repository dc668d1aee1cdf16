"""Every regular expression of the package, the texts that are hardest for each, and their judge.

Run as a program, it is the judge: it reads uses as lines of JSON and answers each with a line,
empty where the time grows as the text does. An expression that takes for ever is killed with it.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import pkgutil
import queue
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple

from growth import FLOOR, seconds, steep

import aiaml_server

if sys.version_info >= (3, 11):
    from re import _constants as constants  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_constants as constants
    import sre_parse as parser

SOME = 16 * 1024  # characters of every hard text
MANY = 4 * 1024 * 1024  # of the hardest
ALL = ("sub", "subn", "split", "findall", "finditer")
METHODS = ("match", "fullmatch", "search", *ALL)


class Use(NamedTuple):
    """An expression, how it is applied, and where."""

    where: str
    pattern: str
    flags: int
    method: str
    binary: bool = False


# --- collecting -----------------------------------------------------------------------------------


def modules() -> Iterator[ModuleType]:
    """Import every module of the package."""
    yield aiaml_server
    for each in pkgutil.walk_packages(aiaml_server.__path__, "aiaml_server."):
        if not each.name.endswith("__main__"):
            yield importlib.import_module(each.name)


def collected() -> list[Use]:
    """Return all uses of all expressions but those that are put together when they are used."""
    uses: list[Use] = []
    methods = Methods()
    for module in modules():
        if not module.__file__:
            continue
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        uses += _written(module, tree)
        methods.learn(module, tree)
    for module in modules():
        for name, pattern in _kept(module):
            where = f"{module.__name__}.{name}"
            uses += [_use(where, pattern, method) for method in methods.of(name)]
    return sorted(set(uses))


def _use(where: str, pattern: re.Pattern[Any], method: str) -> Use:
    binary = isinstance(pattern.pattern, bytes)
    text = pattern.pattern.decode("latin-1") if binary else pattern.pattern
    return Use(where, text, pattern.flags, method, binary)


def _written(module: ModuleType, tree: ast.AST) -> Iterator[Use]:
    """Find what is given to a function of `re` on the spot."""
    for node in ast.walk(tree):
        if not _is_call_of_re(node):
            continue
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        method, place = node.func.attr, f"{module.__name__}: {ast.unparse(node)}"
        if method == "compile" and not _in_function(tree, node):
            continue  # the module keeps what comes of it
        flags = [*node.args[{"sub": 4, "subn": 4, "split": 3}.get(method, 2) :]]
        if method == "compile":
            flags = node.args[1:]
        flags += [each.value for each in node.keywords if each.arg == "flags"]
        flag = int(_value(flags[0], module)) if flags else 0
        with suppress(NameError, TypeError):  # put together from what is not known here
            pattern = re.compile(_value(node.args[0], module), flag)
            yield _use(place, pattern, "search" if method == "compile" else method)


def _is_call_of_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in ("compile", *METHODS)
    )


def _value(node: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(node), "", "eval"), vars(module))  # noqa: S307 (our own)


def _in_function(tree: ast.AST, wanted: ast.AST) -> bool:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(
        isinstance(each, functions) and any(node is wanted for node in ast.walk(each))
        for each in ast.walk(tree)
    )


def _kept(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Find the expressions that a module keeps: in its names, its classes, and what these hold."""
    for name, value in vars(module).items():
        own = getattr(value, "__module__", module.__name__) == module.__name__
        held = vars(value).values() if isinstance(value, type) and own else [value]
        for each in held:
            yield from ((name, pattern) for pattern in _inside(each, 4))


def _inside(value: object, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict) and depth:
        for each in (*value, *value.values()):
            yield from _inside(each, depth - 1)
    elif isinstance(value, (list, tuple, set, frozenset)) and depth:
        for each in value:
            yield from _inside(each, depth - 1)


class Methods:
    """How the expressions that have a name are applied."""

    def __init__(self) -> None:
        self._applied: dict[str, set[str]] = {}

    def learn(self, module: ModuleType, tree: ast.AST) -> None:
        """Note what a module does with names, itself or in a function of its own."""
        del module
        functions = {
            each.name: _parameters(each)
            for each in ast.walk(tree)
            if isinstance(each, ast.FunctionDef)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                self._note(node.func.value, {node.func.attr})
            elif isinstance(node.func, ast.Name) and node.func.id in functions:
                for argument, applied in zip(node.args, functions[node.func.id], strict=False):
                    self._note(argument, applied)

    def _note(self, node: ast.expr, applied: set[str]) -> None:
        name = getattr(node, "id", getattr(node, "attr", ""))
        self._applied.setdefault(name, set()).update(applied)

    def of(self, name: str) -> set[str]:
        """Return how a name is applied; in the hardest way, where nobody says."""
        return self._applied.get(name) or {"finditer"}


def _parameters(function: ast.FunctionDef) -> list[set[str]]:
    """Return, for each parameter, the methods that the function calls of it."""
    called = [
        (node.func.value.id, node.func.attr)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in METHODS
        and isinstance(node.func.value, ast.Name)
    ]
    return [{method for name, method in called if name == each.arg} for each in function.args.args]


# --- hard texts -----------------------------------------------------------------------------------

USUAL = " \t\nazA09_-/.,:é\0"
CATEGORIES = {
    constants.CATEGORY_DIGIT: r"\d",
    constants.CATEGORY_NOT_DIGIT: r"\D",
    constants.CATEGORY_SPACE: r"\s",
    constants.CATEGORY_NOT_SPACE: r"\S",
    constants.CATEGORY_WORD: r"\w",
    constants.CATEGORY_NOT_WORD: r"\W",
}
REPEATS = {constants.MAX_REPEAT, constants.MIN_REPEAT} | {
    getattr(constants, "POSSESSIVE_REPEAT", constants.MAX_REPEAT)
}


class Text(NamedTuple):
    """A beginning, what is repeated behind it, and an end."""

    before: str
    repeated: str
    after: str

    def of(self, size: int) -> str:
        """Return it with about so many characters."""
        return self.before + self.repeated * (size // len(self.repeated)) + self.after


class Hard:
    """Finds the texts that an expression may have to go over again and again.

    These are what it begins with, repeated; what each of its repetitions takes, repeated behind
    what comes before; white space; and texts that match but for their last character.
    """

    def __init__(self, use: Use) -> None:
        self._tree = parser.parse(use.pattern, use.flags)
        self._alphabet = "".join(dict.fromkeys(["a", *_literals(self._tree), *USUAL]))[:60]
        self._found: dict[Text, None] = {}

    def texts(self) -> list[Text]:
        """Return them."""
        for white in (" ", "\n", "\t", "a"):
            self._add("", white)
        self._walk(self._tree, "")
        for whole in self._samples(self._tree):
            for near in (whole, whole[:-1], whole[1:]):
                self._add("", near)
        return list(self._found)

    def _add(self, before: str, repeated: str) -> None:
        if repeated:
            for after in ("", "\0", "\n!"):
                self._found[Text(before, repeated, after)] = None

    def _walk(self, tree: Iterable[Any], before: str) -> None:
        for op, value in tree:
            self._add("", before)
            if op in REPEATS:
                low, high, inner = value
                if high is constants.MAXREPEAT or high > 1000:
                    for each in self._samples(inner):
                        self._add(before, each)
                        self._add("", before + each)
                        self._add(before, each + each[:1])
                self._walk(inner, before)
                del low
            elif op is constants.BRANCH:
                for each in value[1]:
                    self._walk(each, before)
            elif op is constants.SUBPATTERN:
                self._walk(value[3], before)
            before += self._samples([(op, value)])[0]

    def _samples(self, tree: Iterable[Any]) -> list[str]:
        """Return some texts that match, or nearly so."""
        found = [""]
        for op, value in tree:
            more = list(dict.fromkeys(self._one(op, value))) or [""]
            first = [each + more[0] for each in found]
            found = list(dict.fromkeys(first + [found[0] + each for each in more[1:]]))
        return found[: 2 * len(self._alphabet)]

    def _one(self, op: Any, value: Any) -> list[str]:
        found = [""]
        if op is constants.LITERAL:
            found = [chr(value)]
        elif op is constants.NOT_LITERAL:
            found = [each for each in self._alphabet if ord(each) != value]
        elif op is constants.ANY:
            found = list(self._alphabet)
        elif op is constants.IN:
            found = [each for each in self._alphabet if _is_in(each, value)]
        elif op is constants.BRANCH:
            found = [sample for each in value[1] for sample in self._samples(each)]
        elif op is constants.SUBPATTERN:
            found = self._samples(value[3])
        elif op in REPEATS:
            low, _, inner = value
            found = [each * max(low, 1) for each in self._samples(inner)]
        return found


def _literals(tree: Any) -> Iterator[str]:
    for op, value in tree:
        if op in (constants.LITERAL, constants.NOT_LITERAL):
            yield chr(value)
        elif op is constants.IN:
            yield from _literals(
                each for each in value if each[0] in (constants.LITERAL, constants.NOT_LITERAL)
            )
        elif op is constants.BRANCH:
            for each in value[1]:
                yield from _literals(each)
        elif op is constants.SUBPATTERN:
            yield from _literals(value[3])
        elif op in REPEATS:
            yield from _literals(value[2])


def _is_in(character: str, items: Iterable[Any]) -> bool:
    negated, found = False, False
    for op, value in items:
        if op is constants.NEGATE:
            negated = True
        elif op is constants.LITERAL:
            found |= ord(character) == value
        elif op is constants.RANGE:
            found |= value[0] <= ord(character) <= value[1]
        elif op is constants.CATEGORY:
            found |= bool(re.match(CATEGORIES[value], character))
    return found is not negated


# --- judging --------------------------------------------------------------------------------------


def verdict(use: Use) -> str:
    """Say on which text the time of a use grows faster than the text; empty when on none."""
    compiled: re.Pattern[Any] = re.compile(
        use.pattern.encode("latin-1") if use.binary else use.pattern, use.flags
    )

    def apply(text: Text, size: int) -> None:
        whole: Any = text.of(size)
        if use.binary:
            whole = whole.encode("latin-1")
        if use.method in ALL:
            deque(compiled.finditer(whole), 0)
        else:
            getattr(compiled, use.method)(whole)

    times = {}
    for text in Hard(use).texts():
        for size in (SOME // 512, SOME // 64, SOME // 8, SOME):  # most take no time at any
            times[text] = seconds(lambda text=text, size=size: apply(text, size))  # type: ignore[misc]
            if times[text] >= FLOOR and (
                grown := steep(lambda size, text=text: apply(text, size), 16, SOME)  # type: ignore[misc]
            ):
                return f"{text!r}: {grown}"
    hardest = max(times, key=times.__getitem__)
    grown = steep(lambda size: apply(hardest, size), MANY // 16, MANY)
    return grown and f"{hardest!r}: {grown}"


class Judge:
    """Has uses judged by another process, which may take for ever.

    Attributes:
        seconds: for one use.
    """

    def __init__(self) -> None:
        self.seconds = 150.0  # pytest itself waits for 180
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()

    def __call__(self, use: Use) -> str:
        """Return the verdict on a use."""
        if not self._process:
            self._start()
        assert self._process and self._process.stdin
        self._process.stdin.write(json.dumps(use) + "\n")
        self._process.stdin.flush()
        try:
            answer = self._answers.get(timeout=self.seconds)
        except queue.Empty:
            self.close()
            return f"no end in {self.seconds:.0f} s"
        return str(json.loads(answer))

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        )
        self._answers = queue.SimpleQueue()
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stdout, self._answers), daemon=True
        )
        self._reader.start()

    @staticmethod
    def _read(lines: IO[str], answers: queue.SimpleQueue[str]) -> None:
        for line in lines:
            answers.put(line)

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    pipe.close()
        self._process = None


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(verdict(Use(*json.loads(line)))) + "\n")
        sys.stdout.flush()
