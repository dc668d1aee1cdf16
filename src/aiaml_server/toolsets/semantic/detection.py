"""What a conversation says that may be worth keeping: decisions, errors, and that something works.

Rules on single sentences and lines, made for precision: what is missed can still be stored by an
agent, and what is wrongly seen costs a question each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST = 200_000  # characters of a text that are looked at, from its end
LONGEST = 400  # characters of a sentence or a line that is given out
_BREAK = re.compile(r"(?<=[.!?])[ \t]+|[\r\n]+")
_SPACES = re.compile(r"\s+")

# --- decisions ------------------------------------------------------------------------------------

_DECIDED = re.compile(
    r"\b(?:decided|chose|opted|agreed|settled|committed|resolved|picked|concluded)"
    r"[ ](?:to|on|against|for|that|not[ ]to|upon|in[ ]favou?r)\b"
    r"|\b(?:we|i|team|we've|i've|have|has)[ ]"
    r"(?:chose|chosen|picked|selected|adopted|rejected|ruled[ ]out)\b"
    r"|\b(?:let's|let[ ]us|we'll|we[ ]will|we're|we[ ]are|i'll|i[ ]will|going[ ]to|have[ ]to|we)[ ]"
    r"(?:now[ ]|all[ ]|going[ ]to[ ])?"
    r"(?:go(?:ing)?[ ]with(?![ ](?:you|him|her|them|me))|stick(?:ing)?[ ]with"
    r"|standardi[sz](?:e|ing)[ ]on|adopt(?:ing)?|switch(?:ing)?[ ]to|mov(?:e|ing)[ ]from"
    r"|migrat(?:e|ing)[ ](?:from|to)|drop(?:ping)?)\b"
    r"|\b(?:use|using|prefer|keep|choose|take)\b[^,;]{1,60}"
    r"\b(?:instead[ ]of|rather[ ]than|in[ ]favou?r[ ]of)\b"
    r"|\b(?:from[ ]now[ ]on|going[ ]forward|henceforth)\b"
    r"|\b(?:final[ ])?decision(?:[ ]is|[ ]was|:)"
    r"|\badr[- ]?\d+\b|\barchitectur(?:e|al)[ ]decision\b"
    r"|\b(?:our|the)(?:[ ]\w+)?[ ]architecture(?::|[ ](?:is|uses|has|will|follows|consists)\b)",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    r"\b(?:not|never|nobody|n't|haven't|hasn't|hadn't|didn't|don't|isn't|aren't|yet[ ]to|if|unless"
    r"|until|before|whether|should|could|might|may|would|had|suppose|imagine|example|e\.g\."
    r"|who|why|how|what|which|when|once|maybe|perhaps|tell[ ]me|wonder\w*|consider\w*|discuss"
    r"|explain|describe|list|show|find|read|review|summari[sz]e|can[ ]you|please|propos\w+)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:not[ ]sure|if[ ]|or[ ]not|undecided|what[ ]do[ ]you[ ]think)", re.IGNORECASE
)


def decision(text: str) -> str | None:
    """Return the first sentence in which somebody decides something, None where nobody does.

    A question, a condition, or what is said not to be decided is none.
    """
    for sentence in _sentences(text):
        found = _DECIDED.search(sentence)
        if not found or sentence.rstrip("\"') ").endswith("?"):
            continue
        if _UNDECIDED.search(sentence, 0, found.start()) or _TAKEN_BACK.search(
            sentence, found.end()
        ):
            continue
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
        sentence = _SPACES.sub(" ", part).strip(" #*->")
        if sentence and not is_code and len(sentence) <= LONGEST and part.lstrip()[:1] != ">":
            yield sentence


# --- errors ---------------------------------------------------------------------------------------

_ERROR = re.compile(
    r"^(?:E[ ]+)?(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Failure|Fault)\b(?::|$)"  # Python, Java
    r"|^(?:Uncaught|Unhandled|Exception[ ]in[ ]thread)\b|^Caused[ ]by:|\bpanicked[ ]at\b"
    r"|^(?:[^\s:]{1,200}:(?:\d{1,7}:){0,3}[ ])?(?:fatal[ ])?error(?:\[\w+\])?:[ ]\S"  # gcc, git
    r"|\berror[ ](?:TS|CS|C|LNK|E)\d{2,5}\b|\berror\[E\d+\]"
    r"|^(?:[^\s:]{1,200}:[ ])?fatal:[ ]|^panic:[ ]|^npm[ ](?:ERR!|error)|^\[?ERROR\]?[ :]"
    r"|^(?:FAILED|FAIL|ERROR)[ ]\S+"
    r"|\b(?:segmentation[ ]fault|core[ ]dumped|stack[ ]overflow[ ]at|undefined[ ]reference[ ]to)\b"
    r"|:[ ](?:command[ ]not[ ]found|no[ ]such[ ]file[ ]or[ ]directory|permission[ ]denied"
    r"|connection[ ]refused|cannot[ ]find[ ]module|not[ ]found)$"
    r"|\b(?:ECONNREFUSED|EACCES|ENOENT|EADDRINUSE|ETIMEDOUT|ENOSPC)\b"
    r"|\b(?:HTTP(?:/[\d.]+)?|status(?:[ ]code)?)[ ]?:?[ ]?5\d\d\b"
    r"|\b(?:exit(?:ed)?|exit[ ](?:code|status)|returned)[ ](?:with[ ])?(?:code[ ]|status[ ])?"
    r"[1-9]\d{0,2}\b"
    r"|\b(?:got|get|gets|getting|throws|threw|raises|raised|fails[ ]with|failed[ ]with"
    r"|crashes[ ]with|dies[ ]with|see|seeing|hit|hitting|says)\b[^.;]{0,40}"
    r"\b\w{0,60}(?:Error|Exception)\b",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning)\b")
_NO_ERROR = re.compile(
    r"\b(?:0|no|zero|without|any)[ ](?:\w+[ ])?(?:errors?|failures?)\b"
    r"|^(?:except|catch|raise|throw|return|class|def|import|from|if|else|elif|try|with|assert|//|\#"
    r"|/\*|\*|@|<)\b|^\}?[ ]*catch\b|\bthrow[ ]new\b|\bshould[ ](?:raise|throw|fail)"
    r"|\bno[ ]longer\b"
    r"|\b(?:document|explain|handle|catch|raise|throw|add|write|improve|implement|rename|test)\b"
    r"[^.]{0,60}\b\w{0,60}(?:error|exception)",
    re.IGNORECASE,
)


def error(text: str) -> str | None:
    """Return the line that says which error there is, None where there is none.

    Of a Python traceback that is its last line, of other output the first that names one.
    """
    lines = [line.strip() for line in text[-MOST:].splitlines()]
    for number, line in enumerate(lines):
        if line.startswith("Traceback (most recent call last)"):
            named = (each for each in lines[number:] if _EXCEPTION.match(each))
            return next(named, line)[:LONGEST]
        if is_error(line):
            return line[:LONGEST]
    return None


def is_error(line: str) -> bool:
    """Say whether a line is the message of an error."""
    short = line[:LONGEST]
    return bool(_ERROR.search(short)) and not (_NO_ERROR.search(short) or short.endswith("?"))


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
