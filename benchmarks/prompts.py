"""Ordinary prompts of coding and talk, that have nothing to do with what is remembered."""

from __future__ import annotations

from itertools import cycle, islice, product
from random import Random

CODING = """
fix the failing test in {part}
why does {part} raise {error} when the input is empty
add a unit test for {part}
refactor {part} so that it no longer depends on global state
write a docstring for the function in {part}
the build is broken since yesterday, it says {error}, can you look into {part}
rename the variable in {part} and update all callers
make {part} faster, it takes ten seconds on large files
explain what {part} does, step by step
add logging to {part} and handle {error}
convert {part} to async
review my changes to {part} before I push
there is a race condition in {part}, find it
remove the dead code from {part}
write a migration that adds a column for {part}
please bump the dependency that {part} uses and run the linter
how do I mock {part} in a pytest fixture
type hints are missing in {part}, add them and run mypy
the pipeline fails on windows with {error}
generate a changelog entry for the change in {part}
split {part} into two modules
why is {part} not called on startup
can you revert the last commit that touched {part}
add pagination to {part}
""".strip().splitlines()
TALK = """
thanks, that looks good
yes, go ahead
what do you think is the best way to sort a list in {language}
write a short poem about the sea
translate this sentence into {language}
summarize the text above in three bullet points
what is the capital of {country}
explain recursion to a beginner
how many minutes are in a week
can you make it shorter and more polite
give me ten ideas for a birthday gift under fifty dollars
what is the difference between {language} and {country}
draft an email to my landlord about the broken heating
how do I boil an egg
continue
no, the other one
what time is it in {country}
recommend a book about the history of {country}
how does photosynthesis work
write a regular expression for phone numbers in {country}
""".strip().splitlines()
FILLINGS = {
    "part": """the parser|the tokenizer|
utils.py|the login handler|the cache layer|src/api/routes.ts|
the retry decorator|the config loader|the websocket client|the scheduler|the csv exporter|
main.rs|
the database session|the upload endpoint|the CLI entry point|the Dockerfile|the rate limiter|
the date picker component""",
    "error": """a KeyError|a TypeError|a segmentation fault|an out of memory error|error 500|
a deadlock|a timeout""",
    "language": "Python|Rust|German|Spanish|Go|TypeScript|Japanese",
    "country": "France|Brazil|Kenya|Norway|Canada|India",
}


def prompts(count: int = 500, seed: int = 1) -> list[str]:
    """Return so many different prompts, the same for the same seed."""
    made: dict[str, None] = {}
    fillings = {name: "".join(each.splitlines()).split("|") for name, each in FILLINGS.items()}
    for template in (*CODING, *TALK):
        names = [name for name in fillings if f"{{{name}}}" in template]
        for values in product(*[fillings[name] for name in names]):
            said = dict(zip(names, values, strict=True))
            made[template.format(**said)] = None
    everything = list(made)
    Random(seed).shuffle(everything)
    return list(islice(cycle(everything), count))
