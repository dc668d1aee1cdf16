"""What a text suggests: a priority; and in a conversation decisions, errors and confirmations.

The rules look at single English sentences and lines, and prefer precision: an agent can still store
what they miss, and each wrong match costs a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from aiaml_server.toolsets.semantic.models import Memory, NewMemory
from aiaml_server.toolsets.semantic.text import STOP_WORDS

MAX_TEXT = 200_000  # characters that are looked at, from the end
MAX_SENTENCE = 400  # characters of a sentence or line that is returned
_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+|[\r\n]+")
_SPACES = re.compile(r"\s+")


# --- priorities -----------------------------------------------------------------------------------


class Suggestion(NamedTuple):
    """A priority that would fit better, and the reason."""

    priority: str
    reason: str


_CORE = re.compile(
    r"\b(?:cross[- ]cutting|core (?:principle|rule)|always applies|every project|all projects)\b",
    re.IGNORECASE,
)
_HIGH = re.compile(
    r"\b(?:architectur\w{0,4}|security|securely|vulnerabilit\w{1,3}|authenticat\w{1,4}"
    r"|authori[sz]ation|adr|design decision|breaking change|data loss)\b",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(
    r"\b(?:bug ?fix\w{0,3}|fixed (?:a|the) bug|hotfix|workaround|temporar\w{1,3}|for now|todo"
    r"|wip)\b",
    re.IGNORECASE,
)


def suggest_priority(memory: Memory | NewMemory) -> Suggestion | None:
    """Return the priority that a memory's words and tags suggest; None if it has that one."""
    text = " ".join([memory.content, *memory.tags])
    priority = memory.priority or "NORMAL"
    is_important = priority in ("CORE", "HIGH")
    for suggested, pattern, applies, why in (
        ("CORE", _CORE, True, "which concerns everything"),
        ("HIGH", _HIGH, priority != "CORE" and not _TEMPORARY.search(text), "a base of others"),
        ("NORMAL", _TEMPORARY, is_important, "which is temporary"),
    ):
        match = pattern.search(text)
        if match and applies:
            suggestion = Suggestion(suggested, f"it says {match[0]!r}, {why}")
            return suggestion if suggested != priority else None
    if memory.scope == "global" and priority in ("NORMAL", "HIGH"):
        return Suggestion("CORE", "it is global: consider CORE if every project needs it")
    return None


# --- decisions ------------------------------------------------------------------------------------

_DECISION = re.compile(
    r"""
    \b(?:decided|chose|opted|agreed|settled|settling|committed|resolved|picked|concluded)
        [ ](?:to|on|against|for|that|not[ ]to|upon|in[ ]favou?r)\b
    | \b(?:we're|we[ ]are)[ ]going[ ]to[ ](?:use|keep|stay)\b
    | \bi'd[ ]go[ ]with\b
    | \b(?:we'll|we[ ]will)[ ](?:all[ ]|always[ ]|only[ ])?(?:keep|stay|stick)\b
    | (?:\bi'm|\bi[ ]am|\bwe're|\bwe[ ]are|[\u2013\u2014-])[ ](?:just[ ])?going[ ]with[ ]
        (?!you|him|her|no\b)
    | \b(?:don't|do[ ]not)[ ]use[ ][^,;.]{1,60}[,;][ ]?(?:but[ ])?use\b
    | (?:^|:[ ]|\b(?:we|i|we've|i've|was|were)[ ])(?:switched|moved|migrated)[ ]
        (?:[^\s.;]{1,30}[ ]){0,6}(?:to|from)\b[^.;]{1,60}\b(?:to|because|since)\b
    | \bfinal[ ](?:call|choice|word)(?::|[ ]is\b)
    | \b(?:we|i|team|we've|i've|have|has)[ ]
        (?:chose|chosen|picked|selected|adopted|rejected|ruled[ ]out)\b
    | \b(?:let's|let[ ]us|we'll|we[ ]will|we're|we[ ]are|i'll|i[ ]will|going[ ]to|have[ ]to|we)[ ]
        (?:now[ ]|all[ ]|going[ ]to[ ])?
        (?:go(?:ing)?[ ]with(?![ ](?:you|him|her|them|me))|stick(?:ing)?[ ]with
        |standardi[sz](?:e|ing)[ ]on|adopt(?:ing)?|switch(?:ing)?[ ]to|mov(?:e|ing)[ ]from
        |migrat(?:e|ing)[ ](?:from|to)|drop(?:ping)?)\b
    | \b(?:use|using|prefer|keep|choose|take)\b[^,;]{1,60}
        \b(?:instead[ ]of|rather[ ]than|in[ ]favou?r[ ]of)\b
    | \b(?:from[ ]now[ ]on|going[ ]forward|henceforth)\b
    | ^(?:please[ ])?(?:always|never)[ ](?!mind\b|heard\b|knew\b|seen\b|the\b|a\b)[a-z]
    | \bi[ ](?:always[ ]|really[ ]|much[ ]|strongly[ ])?prefer\b
    | ^prefer\b[^.;]{1,80}\bover\b
    | ^use\b[^,;.]{1,60}\bfor[ ](?:all|every|any)\b
    | \b(?:final[ ])?decision(?:[ ]is|[ ]was|:)
    | \badr[- ]?\d+[ ]?[:\u2013\u2014-][ ]?\w+[ ]\w+
    | \barchitectur(?:e|al)[ ]decision\b
    | \b(?:our|the)(?:[ ]\w+)?[ ]architecture(?::|[ ](?:is|uses|has|will|follows|consists)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_UNDECIDED_BEFORE = re.compile(
    r"\b(?:not|never|nobody|n't|haven't|hasn't|hadn't|didn't|don't|isn't|aren't|yet to|if|unless"
    r"|until|before|whether|should|could|might|may|would|had|suppose|imagine|example|e\.g\."
    r"|who|why|how|what|which|when|once|maybe|perhaps|tell me|wonder\w*|consider\w*|discuss"
    r"|explain|describe|list|show|find|read|review|summari[sz]e|can you|please|propos\w+)\b"
    r"|\b(?:he|she|(?:customer|client|buyer|guest|visitor|patient|friend|parent|court|judge)s?) "
    r"(?:has |have |had )?$",
    re.IGNORECASE,
)
_UNDECIDED_AFTER = re.compile(
    r"\b(?:not sure|if |or not|undecided|what do you think)", re.IGNORECASE
)


def find_decision(text: str) -> str | None:
    """Return the first sentence in which somebody decides something, or None.

    Questions, conditions and negations do not count.
    """
    return next(iter(find_decisions(text)), None)


def find_decisions(text: str) -> list[str]:
    """Return the sentences in which somebody decides something, without repetitions."""
    plain = _TERMINAL_ESCAPE.sub("", text[-MAX_TEXT:])
    return list(dict.fromkeys(filter(_is_decision, _sentences(plain))))


def _is_decision(sentence: str) -> bool:
    match = _DECISION.search(sentence)
    if match is None or sentence.rstrip("\"') ").endswith("?"):
        return False
    before = sentence[: match.start()]
    after = sentence[match.end() :]
    return not (_UNDECIDED_BEFORE.search(before) or _UNDECIDED_AFTER.search(after))


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, without quotations and code."""
    in_code = False
    for part in _SENTENCE_END.split(text):
        stripped = part.lstrip()
        if stripped.startswith(("```", "~~~")):
            in_code = not in_code
            continue
        sentence = re.sub(r"^\d{1,3}\. ", "", _SPACES.sub(" ", part).strip(" #*->")).strip("* ")
        if sentence and not in_code and len(sentence) <= MAX_SENTENCE and stripped[:1] != ">":
            yield sentence


# --- errors ---------------------------------------------------------------------------------------

_ERROR = re.compile(
    r"""
    ^(?:[\w.]+[.:]{1,2})?[A-Z]\w*(?:Error|Exception|Failure|Fault)\b(?::|[ ]\(|$)
    | ^(?:Uncaught|Unhandled|Exception[ ]in[ ]thread)\b | ^Caused[ ]by: | \bpanicked[ ]at\b
    | ^(?:[^\s:]{1,200}:(?:\d{1,7}:){0,3}[ ])?(?:(?:PHP[ ])?fatal[ ])?error(?:\[\w+\])?:[ ]+\S
    | \berror[ ](?:TS|CS|C|LNK|E|FS|MSB|NU)\d{2,5}\b | \berror\[E\d+\]
    | ^(?:[^\s:]{1,200}:[ ])?fatal:[ ] | ^panic:[ ] | ^npm[ ](?:ERR!|error)
    | ^\W{0,3}\[?ERROR\]?[ :]+\S
    | ^[^\s:]{1,200}:\d{1,7}:\d{1,5}:[ ](?!warning|note)\S
    | ^[^\s(]{1,200}\.(?:java|kt):\[?\d{1,7} | ^CMake[ ]Error\b | ^\*\*[ ]\(\w
    | ^\d{1,6}:\d{1,5}[ ]+error[ ] | ^(?:docker:[ ])?Error[ ](?:response[ ]from|from[ ]server)\b
    | ^curl:[ ]\(\d{1,3}\) | \([\w:]{1,120}(?:Error|Exception)\)
    | ^\u00d7[ ]\S | ^\u25cf[ ]\S | ^(?:Parse|Runtime|Syntax|Type|Compile)[ ]error\b
    | \bis[ ]not[ ]recognized[ ]as\b | \btimed[ ]out[ ]after\b
    | ^(?:Could[ ]not[ ](?:find|resolve|load)|Execution[ ]failed[ ]for)\b | ^ERR_[A-Z_]{3,}[ ]
    | \b(?:segmentation[ ]fault|core[ ]dumped|undefined[ ]reference[ ]to)\b
    | :[ ]command[ ]not[ ]found\b
    | :[ ](?:no[ ]such[ ]file[ ]or[ ]directory|permission[ ]denied(?:[ ]\([\w,]+\))?\.?
        |connection[ ]refused|cannot[ ]find[ ]module|not[ ]found)$
    | \b(?:ECONNREFUSED|EACCES|ENOENT|EADDRINUSE|ETIMEDOUT|ENOSPC)\b
    | \b(?:HTTP(?:/[\d.]+)?|status(?:[ ]code)?)[ ]?:?[ ]?5\d\d\b
    | \b(?:got|get|gets|getting|throws|threw|raises|raised|fails[ ]with|failed[ ]with
        |crashes[ ]with|dies[ ]with|see|seeing|hit|hitting|says)\b[^.;]{0,40}
        \b\w{0,60}(?:Error|Exception)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ERROR_SUMMARY = re.compile(
    r"^(?:FAILED|FAIL|FAILURE|ERROR)\b:?[ ]\S+|^---[ ]FAIL:|^make(?:\[\d+\])?:[ ]\*\*\*"
    r"|^npm[ ](?:ERR!|error)[ ](?:code[ ]ELIFECYCLE|Test[ ]failed)|^ERROR[ ]in[ ]",
    re.IGNORECASE,
)
"""Lines that say that something failed, and not why: taken if no other line says it."""
_EXIT_STATUS = """
    npm err error elifecycle the a my command process build script job failed it has was with code
    status exit exits exited returned
"""
_EXIT_STATUS_WORDS = frozenset(_EXIT_STATUS.split())
_EXCEPTION = re.compile(r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning)\b")
_NO_ERROR = re.compile(
    r"\b(?:0|no|zero|without|any)[ ](?:\w+[ ])?(?:errors?|failures?)\b"
    r"|^(?:except|catch|raise|throw|return|class|def|import|from|if|else|elif|try|with|assert|//|\#"
    r"|/\*|\*[ ]|@|<)\b|^\}?[ ]*catch\b|\bthrow[ ]new\b|\bshould[ ](?:raise|throw|fail)"
    r"|\bno[ ]longer\b"
    r"|\b(?:document|explain|handle|catch|raise|throw|add|write|improve|implement|rename|test)\b"
    r"[^.]{0,60}\b\w{0,60}(?:error|exception)",
    re.IGNORECASE,
)
_TERMINAL_ESCAPE = re.compile(r"\x1b\[[\d;]{0,20}[A-Za-z]")
_LINE_PREFIX = re.compile(r"^(?:[\s\u2502\u2503|>$]+|E[ ]{2,})")
"""A frame, a prompt, or pytest's mark."""
_VARIABLE_PART = re.compile(
    r"0x[0-9a-f]+|\d+|(?:[A-Za-z]:)?(?:[\\/][\w.~ -]{1,100}){1,30}[\\/](?=[\w.-])"
)


def find_error(text: str) -> str | None:
    """Return the line that names an error, or None.

    Of a Python traceback it is the last line, of other output the first line that names an error.
    An exit code is not enough.
    """
    lines = [
        _LINE_PREFIX.sub("", _TERMINAL_ESCAPE.sub("", line)).strip()[:MAX_SENTENCE]
        for line in text[-MAX_TEXT:].splitlines()
    ]
    tracebacks = [n for n, line in enumerate(lines) if line.startswith("Traceback (most recent")]
    if tracebacks:
        last = lines[tracebacks[-1] :]
        return next(filter(_EXCEPTION.match, last), last[0])
    found = [line for line in lines if is_error_line(line)]
    reasons = [line for line in found if not _ERROR_SUMMARY.search(line)]
    return next(iter(reasons or found), None)


def is_error_line(line: str) -> bool:
    """Return whether a line is an error message."""
    is_status = all(
        word in _EXIT_STATUS_WORDS or (word.isdecimal() and len(word) <= 3)
        for word in re.split(r"[\s:.!]+", line.lower().strip(" :.!"))
    )
    if is_status or line.endswith("?") or _NO_ERROR.search(line):
        return False
    return bool(_ERROR.search(line) or _ERROR_SUMMARY.search(line))


def error_signature(message: str) -> str:
    """Return what is equal for messages that differ in numbers and directories only."""
    return _SPACES.sub(" ", _VARIABLE_PART.sub("#", message.lower())).strip()


_GENERAL = """
    error errors failed fails failure fatal exception command line file code exit status solution
    context decided decide decision chose choose use uses using always never prefer will going keep
    let now all one get instead because since
"""
_GENERAL_WORDS = STOP_WORDS | frozenset(_GENERAL.split())
"""Words that errors and decisions of any kind have."""


def keyword_stems(text: str) -> set[str]:
    """Return the words of a text that say what it is about, by their first five letters."""
    words = set(re.findall(r"[^\W\d_]{3,}", text.lower())) - _GENERAL_WORDS
    return {word[:5] for word in words}


# --- confirmations --------------------------------------------------------------------------------

_WORKS = re.compile(
    r"\b(?:that|this|it|everything|all)[ ]"
    r"(?:now[ ]|all[ ]|really[ ]|finally[ ]|has[ ]|is[ ]|did[ ]|just[ ])?"
    r"(?:works|worked|working|fixed|solved|resolved|did[ ]it|helped|passes|passed)\b"
    r"|\b(?:that|this|it)'s[ ](?:now[ ])?(?:fixed|working|solved|resolved|gone|green)\b"
    r"|^(?:works|worked|fixed|solved|resolved)\b"
    r"|\b(?:no[ ]more[ ]errors?|error[ ]is[ ]gone|works[ ](?:now|fine|again|perfectly)"
    r"|(?:tests?|build)[ ](?:now[ ])?(?:pass(?:es)?|succeeds)"
    r"|(?:problem|issue|bug)[ ](?:is[ ])?(?:now[ ])?(?:solved|fixed|gone|resolved))\b",
    re.IGNORECASE,
)
_WORKS_NOT = re.compile(
    r"\b(?:not|n't|never|doesn't|didn't|isn't|still|but|nope|almost|except|partly|if|whether"
    r"|make[ ]sure|until|when|once|should|could|how|why|can[ ]you|please)\b",
    re.IGNORECASE,
)


def is_confirmation(text: str) -> bool:
    """Return whether the first sentence says that what was broken works now."""
    first = _SENTENCE_END.split(text.strip()[:MAX_SENTENCE])[0].strip()
    if first.endswith("?") or _WORKS_NOT.search(first):
        return False
    return bool(_WORKS.search(first))
