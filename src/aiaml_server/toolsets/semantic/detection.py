"""What a conversation says that may be worth keeping: decisions, errors, and that something works.

Rules on single sentences and lines, made for precision: what is missed can still be stored by an
agent, and what is wrongly seen costs a question each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aiaml_server.toolsets.semantic.cutting import STOP

MOST = 200_000  # characters of a text that are looked at, from its end
LONGEST = 400  # characters of a sentence or a line that is given out
_OF_ANY = """
    error errors failed fails failure fatal exception command line file code exit status solution
    context decided decide decision chose choose use uses using always never prefer will going keep
    let now all one get instead because since
"""
_PLAIN = STOP | frozenset(_OF_ANY.split())
"""Words that errors and decisions of any kind have."""
_BREAK = re.compile(r"(?<=[.!?])[ \t]+|[\r\n]+")
_SPACES = re.compile(r"\s+")
_NUMBER = re.compile(r"^\d{1,3}\.[ ]")

# --- decisions ------------------------------------------------------------------------------------

_DECIDED_FORMS = (
    (
        r"\b(?:decided|chose|opted|agreed|settled|settling|committed|resolved|picked|concluded)"
        r"[ ](?:to|on|against|for|that|not[ ]to|upon|in[ ]favou?r)\b"
        r"|\b(?:we're|we[ ]are)[ ]going[ ]to[ ](?:use|keep|stay)\b|\bi'd[ ]go[ ]with\b"
        r"|\b(?:we'll|we[ ]will)[ ](?:all[ ]|always[ ]|only[ ])?(?:keep|stay|stick)\b"
        r"|(?:\bi'm|\bi[ ]am|\bwe're|\bwe[ ]are|[\u2013\u2014-])[ ](?:just[ ])?going[ ]with[ ]"
        r"(?!you|him|her|no\b)"
    ),
    (
        r"\b(?:don't|do[ ]not)[ ]use[ ][^,;.]{1,60}[,;][ ]?(?:but[ ])?use\b"
        r"|(?:^|:[ ]|\b(?:we|i|we've|i've|was|were)[ ])(?:switched|moved|migrated)[ ]"
        r"(?:[^\s.;]{1,30}[ ]){0,6}(?:to|from)\b[^.;]{1,60}\b(?:to|because|since)\b"
        r"|\bfinal[ ](?:call|choice|word)(?::|[ ]is\b)"
        r"|\b(?:we|i|team|we've|i've|have|has)[ ]"
        r"(?:chose|chosen|picked|selected|adopted|rejected|ruled[ ]out)\b"
    ),
    (
        r"\b(?:let's|let[ ]us|we'll|we[ ]will|we're|we[ ]are|i'll|i[ ]will"
        r"|going[ ]to|have[ ]to|we)[ ]"
        r"(?:now[ ]|all[ ]|going[ ]to[ ])?"
        r"(?:go(?:ing)?[ ]with(?![ ](?:you|him|her|them|me))|stick(?:ing)?[ ]with"
        r"|standardi[sz](?:e|ing)[ ]on|adopt(?:ing)?|switch(?:ing)?[ ]to|mov(?:e|ing)[ ]from"
        r"|migrat(?:e|ing)[ ](?:from|to)|drop(?:ping)?)\b"
    ),
    (
        r"\b(?:use|using|prefer|keep|choose|take)\b[^,;]{1,60}"
        r"\b(?:instead[ ]of|rather[ ]than|in[ ]favou?r[ ]of)\b"
    ),
    (
        r"\b(?:from[ ]now[ ]on|going[ ]forward|henceforth)\b"
        r"|^(?:please[ ])?(?:always|never)[ ](?!mind\b|heard\b|knew\b|seen\b|the\b|a\b)[a-z]"
        r"|\bi[ ](?:always[ ]|really[ ]|much[ ]|strongly[ ])?prefer\b|^prefer\b[^.;]{1,80}\bover\b"
        r"|^use\b[^,;.]{1,60}\bfor[ ](?:all|every|any)\b"
        r"|\b(?:final[ ])?decision(?:[ ]is|[ ]was|:)"
        r"|\badr[- ]?\d+[ ]?[:\u2013\u2014-][ ]?\w+[ ]\w+|\barchitectur(?:e|al)[ ]decision\b"
        r"|\b(?:our|the)(?:[ ]\w+)?[ ]architecture(?::|[ ](?:is|uses|has|will|follows|consists)\b)"
    ),
)
_DECIDED = [re.compile(each, re.IGNORECASE) for each in _DECIDED_FORMS]
_UNDECIDED = re.compile(
    r"\b(?:not|never|nobody|n't|haven't|hasn't|hadn't|didn't|don't|isn't|aren't|yet[ ]to|if|unless"
    r"|until|before|whether|should|could|might|may|would|had|suppose|imagine|example|e\.g\."
    r"|who|why|how|what|which|when|once|maybe|perhaps|tell[ ]me|wonder\w*|consider\w*|discuss"
    r"|explain|describe|list|show|find|read|review|summari[sz]e|can[ ]you|please|propos\w+)\b",
    re.IGNORECASE,
)
_OF_OTHERS = re.compile(
    r"\b(?:he|she|(?:customer|client|buyer|guest|visitor|patient|friend|parent|court|judge)s?)[ ]"
    r"(?:has[ ]|have[ ]|had[ ])?$",
    re.IGNORECASE,
)
"""Who decides for themselves, and nothing about the work."""
_RECORD = re.compile(
    r"^\#{1,6}[ \t]+(?:\d+\.[ \t]*)?decision(?:[ ]outcome)?[ \t]*$", re.IGNORECASE | re.MULTILINE
)
_TAKEN_BACK = re.compile(
    r"\b(?:not[ ]sure|if[ ]|or[ ]not|undecided|what[ ]do[ ]you[ ]think)", re.IGNORECASE
)


def decision(text: str) -> str | None:
    """Return the first sentence in which somebody decides something, None where nobody does.

    A question, a condition, or what is said not to be decided is none. A preference that is stated
    as a rule is one ("always use tabs"). Of a decision record it is what its section says.
    """
    text = text[-MOST:]
    if record := _RECORD.search(text):
        return next(_sentences(text[record.end() :]), None)
    for sentence in _sentences(text):
        matches = [match for form in _DECIDED if (match := form.search(sentence))]
        if not matches or sentence.rstrip("\"') ").endswith("?"):
            continue
        found = min(matches, key=re.Match.start)
        before, after = sentence[: found.start()], sentence[found.end() :]
        if not (
            _UNDECIDED.search(before) or _OF_OTHERS.search(before) or _TAKEN_BACK.search(after)
        ):
            return sentence
    return None


def decisions(text: str, most: int) -> list[str]:
    """Return the sentences in which somebody decides something, each once."""
    found = dict.fromkeys(each for each in _sentences(text) if decision(each))
    return list(found)[:most]


def _sentences(text: str) -> Iterator[str]:
    """Return the sentences of a text; what is quoted or shown as code is left out."""
    is_code = False
    for part in _BREAK.split(text[-MOST:]):
        if part.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
            continue
        sentence = _NUMBER.sub("", _SPACES.sub(" ", part).strip(" #*->")).strip("* ")
        if sentence and not is_code and len(sentence) <= LONGEST and part.lstrip()[:1] != ">":
            yield sentence


# --- errors ---------------------------------------------------------------------------------------

_ERROR_FORMS = (
    (
        r"^(?:[\w.]+[.:]{1,2})?[A-Z]\w*(?:Error|Exception|Failure|Fault)\b(?::|[ ]\(|$)"  # Java
        r"|^(?:Uncaught|Unhandled|Exception[ ]in[ ]thread)\b|^Caused[ ]by:|\bpanicked[ ]at\b"
        r"|^(?:[^\s:]{1,200}:(?:\d{1,7}:){0,3}[ ])?(?:(?:PHP[ ])?fatal[ ])?error(?:\[\w+\])?:[ ]+\S"
    ),
    (
        r"\berror[ ](?:TS|CS|C|LNK|E|FS|MSB|NU)\d{2,5}\b|\berror\[E\d+\]"
        r"|^(?:[^\s:]{1,200}:[ ])?fatal:[ ]|^panic:[ ]|^npm[ ](?:ERR!|error)"
        r"|^\W{0,3}\[?ERROR\]?[ :]+\S"
        r"|^[^\s:]{1,200}:\d{1,7}:\d{1,5}:[ ](?!warning|note)\S"
    ),  # go, ruff, clang
    (
        r"^[^\s(]{1,200}\.(?:java|kt):\[?\d{1,7}|^CMake[ ]Error\b|^\*\*[ ]\(\w"
        r"|^\d{1,6}:\d{1,5}[ ]+error[ ]|^(?:docker:[ ])?Error[ ](?:response[ ]from|from[ ]server)\b"
        r"|^curl:[ ]\(\d{1,3}\)|\([\w:]{1,120}(?:Error|Exception)\)"  # Ruby
        r"|^\u00d7[ ]\S|^\u25cf[ ]\S|^(?:Parse|Runtime|Syntax|Type|Compile)[ ]error\b"
    ),
    (
        r"\bis[ ]not[ ]recognized[ ]as\b|\btimed[ ]out[ ]after\b"
        r"|^(?:Could[ ]not[ ](?:find|resolve|load)|Execution[ ]failed[ ]for)\b|^ERR_[A-Z_]{3,}[ ]"
        r"|\b(?:segmentation[ ]fault|core[ ]dumped|stack[ ]overflow[ ]at"
        r"|undefined[ ]reference[ ]to)\b"
        r"|:[ ]command[ ]not[ ]found\b|:[ ](?:no[ ]such[ ]file[ ]or[ ]directory"
        r"|permission[ ]denied(?:[ ]\([\w,]+\))?\.?"
        r"|connection[ ]refused|cannot[ ]find[ ]module|not[ ]found)$"
        r"|\b(?:ECONNREFUSED|EACCES|ENOENT|EADDRINUSE|ETIMEDOUT|ENOSPC)\b"
        r"|\b(?:HTTP(?:/[\d.]+)?|status(?:[ ]code)?)[ ]?:?[ ]?5\d\d\b"
    ),
    (
        r"\b(?:got|get|gets|getting|throws|threw|raises|raised|fails[ ]with|failed[ ]with"
        r"|crashes[ ]with|dies[ ]with|see|seeing|hit|hitting|says)\b[^.;]{0,40}"
        r"\b\w{0,60}(?:Error|Exception)\b"
    ),
)
_ERROR = [re.compile(each, re.IGNORECASE) for each in _ERROR_FORMS]
_SUMMARY = re.compile(
    r"^(?:FAILED|FAIL|FAILURE|ERROR)\b:?[ ]\S+|^---[ ]FAIL:|^make(?:\[\d+\])?:[ ]\*\*\*"
    r"|^npm[ ](?:ERR!|error)[ ](?:code[ ]ELIFECYCLE|Test[ ]failed)"
    r"|^ERROR[ ]in[ ]",
    re.IGNORECASE,
)
"""That something failed, and not why: taken where no other line says that."""
_OF_STATUS = """
    npm err error elifecycle the a my command process build script job failed it has was with code
    status exit exits exited returned
"""
_STATUS = frozenset(_OF_STATUS.split())
"""The words of a line that tells an exit code and nothing else: it tells no error from another."""
_APART = re.compile(r"[\s:.!]+")
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
_ESCAPES = re.compile(r"\x1b\[[\d;]{0,20}[A-Za-z]")
_TOOL_ERROR = re.compile(r"<tool_use_error>(.{1,400}?)(?:</tool_use_error>|$)", re.DOTALL)
_BEFORE = re.compile(r"^(?:[\s\u2502\u2503|>$]+|E[ ]{2,})")
"""What stands before a line: a frame, a prompt, pytest's mark."""
_VARIES = re.compile(r"0x[0-9a-f]+|\d+|(?:[A-Za-z]:)?(?:[\\/][\w.~ -]{1,100}){1,30}[\\/](?=[\w.-])")


def error(text: str) -> str | None:
    """Return the line that says which error there is, None where there is none.

    Of a Python traceback that is its last line, of other output the first that names one; an exit
    code is none.
    """
    if told := _TOOL_ERROR.search(text[-MOST:]):
        return _SPACES.sub(" ", told[1]).strip()[:LONGEST] or None
    lines = [_BEFORE.sub("", _ESCAPES.sub("", line)).strip() for line in text[-MOST:].splitlines()]
    begun = [at for at, line in enumerate(lines) if line.startswith("Traceback (most recent call")]
    if begun:
        named = (each for each in lines[begun[-1] :] if _EXCEPTION.match(each))
        return next(named, lines[begun[-1]])[:LONGEST]
    found = [line[:LONGEST] for line in lines if is_error(line)]
    why = (line for line in found if not _SUMMARY.search(line))
    return next(why, next(iter(found), None))


def is_error(line: str) -> bool:
    """Say whether a line is the message of an error."""
    short = line[:LONGEST]
    words = _APART.split(short.lower().strip(" :.!"))
    is_status = all(word in _STATUS or (word.isdecimal() and len(word) <= 3) for word in words)
    if is_status or _NO_ERROR.search(short) or short.endswith("?"):
        return False
    return any(form.search(short) for form in _ERROR) or bool(_SUMMARY.search(short))


def same_error(signature: str) -> str:
    """Return what two messages have in common that differ in numbers and directories alone."""
    return _SPACES.sub(" ", _VARIES.sub("#", signature.lower())).strip()


def telling(text: str) -> set[str]:
    """Return the words of a text that say what it is about, by their first five letters."""
    words = set(re.findall(r"[^\W\d_]{3,}", text.lower())) - _PLAIN
    return {word[:5] for word in words}


# --- that something works -------------------------------------------------------------------------

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


def confirmed(text: str) -> bool:
    """Say whether somebody says that what was broken works now; a short text, at its beginning."""
    first = next(iter(_BREAK.split(text.strip()[:LONGEST])), "").strip()
    said = _WORKS.search(first)
    return bool(said) and not _WORKS_NOT.search(first) and not first.endswith("?")
