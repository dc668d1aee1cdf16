"""Secrets are known by their form; examples are none, and hostile texts cost little."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from itertools import cycle

import pytest

from aiaml_server.format.leaks import Leak, find, leak, objection
from aiaml_server.format.leaks.table import forms
from clock import quick
from paths import TESTS
from secrets_corpus import (
    ALNUM,
    ALPHABETS,
    B64,
    HEX,
    NAMED,
    SECRETS,
    URL,
    kubernetes,
    named_no_secrets,
    near_misses,
    of,
    ordinary,
)

FORMS = forms()
if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KIB = 1024
MIB = 1024 * KIB


def test_the_corpus_is_as_large_as_it_claims() -> None:
    """What the other tests say of all is said of many."""
    assert len(SECRETS) >= 110
    assert len(ordinary()) >= 137
    assert len(near_misses()) >= 63


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_found_wherever_it_stands(kind: str) -> None:
    """In a sentence, alone, at the end, in a list, in code, on the third line."""
    drawn = SECRETS[kind](random.Random(kind))
    frames = ("The one for the flat: {}, until May.", "{}", "- {}\n- milk", "x\n\n{}\n", "`{}`")
    for frame in frames:
        assert leak(frame.replace("{}", drawn).encode()), frame


def test_hardly_any_drawing_is_taken_for_an_example() -> None:
    """Of twenty of each form, at most one in a hundred of all."""
    missed = [
        drawn
        for kind, draw in SECRETS.items()
        for drawn in map(draw, [random.Random(f"{kind} {n}") for n in range(20)])
        if not leak(drawn.encode())
    ]
    assert len(missed) <= len(SECRETS) * 20 / 100


def test_ordinary_texts_hold_none() -> None:
    """Prose, code, lock files, logs, images, public keys: no alarm at all."""
    alarms = {text[:80]: found for text in ordinary() if (found := leak(text.encode()))}
    assert alarms == {}


def test_examples_of_documentation_are_no_secrets() -> None:
    """At most three of them are taken for one."""
    alarms = {text[:80]: found for text in near_misses() if (found := leak(text.encode()))}
    assert len(alarms) <= 3, alarms


@pytest.mark.parametrize("alphabet", [B64, URL])
@pytest.mark.parametrize(("prefix", "length"), [("YCA", 38), ("EAA", 120), ("tfp_", 50)])
def test_what_chance_writes_in_megabytes_of_base64_is_no_secret(
    alphabet: str, prefix: str, length: int
) -> None:
    """Within a long run, or in lines; alone, the same is one."""
    r = random.Random(prefix)
    token = prefix + of(ALNUM, length)(r)
    run = f"{of(alphabet, 500)(r)}{alphabet[-1]}{token}{of(alphabet, 500)(r)}"
    lines = "\n".join(run[at : at + 76] for at in range(0, len(run), 76))
    alone = [f"{token}.", f"key={token}", f'{{"key": "{token}"}}', f"see `{token}`, {token}"]
    assert [leak(each.encode()) for each in (run, lines)] == ["", ""]
    assert all(leak(each.encode()) for each in alone)


@pytest.mark.parametrize(
    "text",
    [
        "ghp_" + "a1B2" * 9,  # a pattern
        "ASIAPACIFICREGIONALS",  # words
        "hf_TheQuickBrownFoxesJumpOverAnyLazies",
        "sk-" + "0f" * 16,
        "glpat-" + "-_" * 10,
        "npm_" + "aaaabbbbccccddddeeeeffffgggghhhhiiii",
        "xoxb-1111111111-2222222222-" + "z" * 24,
    ],
)
def test_what_was_not_drawn_at_random_is_no_secret(text: str) -> None:
    """Also without a word by which it could be told for an example."""
    assert leak(text.encode()) == ""


def test_keys_that_issuers_publish_are_no_secrets() -> None:
    """Everybody tries them; put together here, so that no scanner takes this file for a leak."""
    assert not leak(b"sk_test_" + b"4eC39HqLyjWDar" + b"jtT1zdp7dc")
    assert not leak(b"ghp_" + b"16C7e42F292c6912E77" + b"10c838347Ae178B4a")
    assert leak(b"sk_test_" + b"4eC39HqLyjWDar" + b"jtT1zdp7dd")


def test_each_form_is_found_by_a_secret_of_the_corpus() -> None:
    """Most rows of the table are used; those that are not are much like one that is."""
    found = {leak(draw(random.Random(n)).encode()) for draw in SECRETS.values() for n in range(3)}
    names = {form.name for form in FORMS}
    assert found <= names
    assert len(names - found) <= len(names) / 3


def test_the_table_names_its_sources_and_bounds() -> None:
    """Each row has a source, and no quantifier without an upper bound."""
    for form in FORMS:
        assert len(form.source) > 8, form
        assert form.name.startswith(("a ", "an ")), form
        bare = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "x", form.pattern)
        assert not re.search(r"[*+]|\{\d*,\}", bare), form
        lowered = tuple(a.encode().lower().decode() for a in form.anchors)
        assert form.anchors == lowered or not form.beside, form


def test_what_every_memory_has_of_its_own_asks_for_no_form() -> None:
    """Its moment and its path are long words, which no secret is; one beside them is found."""
    path = b"files/20261123_171912_859a37fc.md"
    head = b"---\nid: 859a37fc\ntimestamp: 2026-11-23T17:19:12.268296+00:00\n---\n\n"
    secret = SECRETS["ec key"](random.Random(1)).encode()
    assert objection(path, head + secret)
    script = (
        "import sys; from aiaml_server.format.leaks import objection; "
        f"print(objection({path!r}, {head + b'x'!r}), "
        "'tomllib' in sys.modules or 'tomli' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert said.stdout.decode() == " False\n"


def test_a_name_can_hold_one_as_well() -> None:
    """The name of a file travels like what is in it."""
    token = f"ghp_{of(ALNUM, 36)(random.Random(1))}"
    assert objection(f"files/{token}.md".encode(), b"x") == "its name seems to hold a GitHub token"
    assert objection(b"files/a.md", token.encode()) == "it seems to hold a GitHub token"
    assert objection(b"files/20260101_120000_1b2c3d4e.md", b"x") == ""


def test_a_short_address_with_a_password_of_odd_characters_is_found() -> None:
    """There is no long word in it."""
    assert leak(b"see redis://:a#b&c?d@h.io/ for it") == "a password in an address"


def test_bytes_that_are_no_text_are_looked_into() -> None:
    """A memory by hand may be of any encoding."""
    token = f"ghp_{of(ALNUM, 36)(random.Random(1))}".encode()
    assert leak(b"\xff\xfe\x00 " + token + b"\xff")
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        assert leak(f"Köln: {token.decode()}, until May".encode(encoding)), encoding


@pytest.mark.parametrize("unseen", ["\u200b", "\u00ad", "\u2060", "\ufeff", "\u202e", "\x08", "\0"])
def test_leak_with_invisible_characters_in_it(unseen: str) -> None:
    """A token, a password and a name are what a person sees of them; the line is told, too."""
    r = random.Random(unseen)
    token = f"ghp_{of(ALNUM, 36)(r)}"
    broken = f"a\n{token[:9]}{unseen}{token[9:]}"
    assert find(broken.encode()) == Leak("a GitHub token", 2)
    assert leak(f"{unseen}pass{unseen}word: {of(ALNUM, 6)(r)}{unseen}{of(ALNUM, 8)(r)}".encode())
    assert leak(f"{token}{unseen}and more".encode())  # which is none without the character


WORDS = """\
ripple canyon velvet orbit hungry maple drift sunset puzzle anchor toilet breeze unfold lizard have
any into bamboo cactus fiscal gospel humor inmate jungle kiwi ladder mirror nephew ozone pelican
"""


@pytest.mark.parametrize("count", [12, 24])
@pytest.mark.parametrize(
    "frame",
    [
        "seed phrase: {}",
        "My recovery phrase is:\n\n```\n{}\n```\n",
        "**Mnemonic** = `{}`",
        "Secret Recovery Phrase (of the old wallet): {}.",
        "Die Seed-Phrase lautet {}",
        "la frase semilla es {}",
    ],
)
def test_leak_recovery_phrase(frame: str, count: int) -> None:
    """Twelve words or more below their name: in a line, in columns, in a list with numbers."""
    words = random.Random(frame).sample(WORDS.split(), count)
    rows = [" ".join(words[at : at + 4]) for at in range(0, count, 4)]
    numbered = [f"{number}. {word}" for number, word in enumerate(words, 1)]
    bullets = [f"- {word}" for word in words]
    written = (" ".join(words), ", ".join(words), *map("\n".join, (rows, numbered, bullets)))
    assert {leak(frame.replace("{}", each).encode()) for each in written} == {"a recovery phrase"}
    assert not leak(frame.replace("{}", " ".join(words[:11])).encode())


# --- values of no known form, beside a name -------------------------------------------------------


def missed(way: str, alphabet: str, numbers: Iterable[int]) -> list[str]:
    """Return the texts in which a drawn value is not found."""
    length, frame = NAMED.get(way, (16, "{}"))
    found = []
    for number in numbers:
        value = of(ALPHABETS[alphabet], length)(random.Random(f"{way} {alphabet} {number}"))
        texts = kubernetes(value) if way == "Kubernetes" else [frame.replace("{}", value)]
        found += [text for text in texts if not leak(text.encode())][:1]
    return found


WAYS = (*NAMED, "Kubernetes")


@pytest.mark.parametrize("way", WAYS)
def test_leak_value_beside_a_name(way: str) -> None:
    """Of fifty values, drawn from nine alphabets in turn, at least 48 are found."""
    drawn = zip(range(50), cycle(ALPHABETS), strict=False)
    assert len([text for n, each in drawn for text in missed(way, each, [n])]) <= 2


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_leak_value_of_an_alphabet(alphabet: str) -> None:
    """From each of them 96 of 100 are found, over all ways to write one."""
    not_found = [text for way in WAYS for text in missed(way, alphabet, range(20))]
    assert len(not_found) <= 0.04 * 20 * len(WAYS), not_found


@pytest.mark.parametrize("held_out", [False, True], ids=["tuned on", "held out"])
def test_leak_near_misses_of_names(held_out: bool) -> None:
    """At most 2 % of each half are taken for a secret; one half was never tuned on."""
    texts = named_no_secrets(held_out=held_out)
    alarms = [text for text in texts if leak(text.encode())]
    assert len(texts) > 110
    assert len(alarms) <= 0.02 * len(texts), alarms


@pytest.mark.parametrize(
    "text",
    [
        "password = hunter2",  # chosen, not drawn
        "passphrase: correct-horse-battery-staple",
        "token = " + "aB3$" * 10,
        "api_key = /srv/keys/2026/a8f2k1x9.json",
        "public_key: " + of(B64, 43)(random.Random(1)),
        "cache key: " + of(HEX, 40)(random.Random(1)),
        "secret: " + of(B64, 600)(random.Random(1)),  # longer than any
    ],
)
def test_leak_beside_a_name_is_none(text: str) -> None:
    """What a person chose, a place, something public, a digest under a plain key, a picture."""
    assert leak(text.encode()) == ""


def test_find_names_the_line() -> None:
    """It is the line on which the secret begins; also in a text of two bytes a letter."""
    text = f"a\nb\npassword = {of(ALNUM, 16)(random.Random(1))}\nc\n"
    expected = Leak("a password or key beside its name", 3)
    assert find(text.encode()) == find(text.encode("utf-16")) == expected
    assert find(b"a\nb\n") is None


# --- whose secrets others know --------------------------------------------------------------------


def providers() -> dict[str, str]:
    """Return the issuers that another scanner's rules name, each with our row; "" for none."""
    path = (TESTS / "fixtures") / "providers.toml"
    found: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8"))["providers"]
    return found


def test_leaks_coverage_of_a_list_of_others(record_property: Callable[[str, object], None]) -> None:
    """Of the issuers on a list that is not ours, 107 of 130 have a row; none falls away."""
    rows = {form.name for form in FORMS}
    covered = {issuer for issuer, row in providers().items() if row in rows}
    assert {issuer for issuer, row in providers().items() if row} == covered
    record_property("covered", f"{len(covered)} of {len(providers())} issuers")
    assert (len(covered), len(providers())) == (107, 130)


@pytest.mark.parametrize("issuer", sorted(name for name, row in providers().items() if not row))
def test_leak_of_an_issuer_without_a_row(issuer: str) -> None:
    """Where it stands beside a name, it is found by that."""
    value = of(ALNUM, 40)(random.Random(issuer))
    name = issuer.upper().replace("-", "_")
    assert leak(f"{name}_API_KEY={value}".encode())


# --- how long it takes ----------------------------------------------------------------------------


def seconds(data: bytes, tries: int = 2) -> float:
    """Return the least processor time of some tries."""
    found = []
    for _ in range(tries):
        start = time.process_time()
        leak(data)
        found.append(time.process_time() - start)
    return min(found)


def repeated(unit: str, size: int) -> bytes:
    """Return a unit again and again, up to a size."""
    return (unit * (size // len(unit) + 1))[:size].encode()


@pytest.mark.gate_cases(20)
@pytest.mark.parametrize("number", range(len(FORMS)))
def test_what_begins_like_a_secret_costs_no_more_than_its_length(number: int) -> None:
    """Twice as much takes about twice as long, whichever form is begun again and again."""
    form = FORMS[number]
    anchor = form.anchors[number % len(form.anchors)]
    near = anchor + "a1B2c3-" if number % 2 else f"{anchor}="
    for unit in (f"{anchor} key = ", near):
        small, large = seconds(repeated(unit, 8 * KIB)), seconds(repeated(unit, 16 * KIB))
        quick(large, 3 * small + 0.01)
        quick(large, 16 * KIB / MIB * 2 + 0.02)


ALL = " ".join(anchor for form in FORMS for anchor in form.anchors)
WHOLE = (" ", "\n", "a", "-", "://a:", ALL)


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize("unit", WHOLE, ids=lambda unit: repr(unit[:11]))
def test_a_megabyte_takes_a_second_and_four_take_four(unit: str) -> None:
    """Growth, rather than the time: a slow machine is no fault."""
    one, four = seconds(repeated(unit, MIB)), seconds(repeated(unit, 4 * MIB), 1)
    quick(four, 6 * one + 0.05)
    quick(one, 2)  # on a busy machine; 0.2 s, mostly


@pytest.mark.parametrize(
    "unit",
    [
        *("key =", "key: ", "key=", "secret = ", "password=", "pass=", "pwd", 'api_key = "'),
        *('key="aaaaaaaaaaaaaaaaaaaaaaaa" ', "password: correcthorsebattery\n", "key is letters "),
        "key=token=secret=passw=pwd=passphrase=passcode=",
    ],
)
def test_leak_names_without_a_value_cost_little(unit: str) -> None:
    """A megabyte of names beside which nothing looks drawn takes a second, mostly a third."""
    size = 128 * KIB
    quick(seconds(repeated(unit, size)), size / MIB + 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("names", ["public_key: ", "key=token=secret=pass=pwd=clave=", "key="])
def test_leak_of_too_many_near_misses_is_told(names: str) -> None:
    """A megabyte of what is none at a second look takes a second, and is not called harmless."""
    drawn, text = random.Random(5), ""
    while len(text) < MIB:
        text += f"{names}{of(ALNUM, 12)(drawn)}EXAMPLE\n"
    assert leak(text.encode()) == "more that may be keys or passwords than can be looked through"
    quick(seconds(text.encode(), 1), 1)


def test_leak_of_near_misses_among_more_text_is_none() -> None:
    """As many as are too many in a megabyte, in a file of two: a person's log, say."""
    drawn = random.Random(5)
    near = "".join(f"public_key: {of(ALNUM, 16)(drawn)}\n" for _ in range(6_000))
    assert leak(near.encode()) == "more that may be keys or passwords than can be looked through"
    assert leak(near.encode() + b"A line as it is usual in logs.\n" * 70_000) == ""


def test_leak_value_after_many_names_is_found() -> None:
    """However many names stand before it, and however far."""
    text = b"password = hunter2, key: letters\n" * 3000
    value = of(ALNUM, 16)(random.Random(1)).encode()
    last = b"the password of the router: " + value
    assert find(text + last) == Leak("a password or key beside its name", 3001)
    assert leak(text + b"password:\n\n    > `" + value + b"`")


def test_what_no_secret_can_be_in_costs_next_to_nothing() -> None:
    """`remember` looks as well, and an agent waits for it: less than 0.1 ms for a kilobyte."""
    prose = ("Marco's dog Max is allergic to chicken. He prefers tea. " * 18)[:1000].encode()
    leak(prose)
    start = time.process_time()
    for _ in range(100):
        leak(prose)
    quick(time.process_time() - start, 100 * 0.0002)  # twice that, for a busy machine
