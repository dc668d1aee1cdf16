"""Exact scores of keywords, as `scorer` defines them, from the index.

A keyword of word characters is added up from the terms that contain it. Any other
keyword, and one that very many terms contain, is counted in the stored texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aiaml_server.format.filters import Filter
from aiaml_server.format.question import normalize
from aiaml_server.format.scorer import Found, other_forms, score
from aiaml_server.index.database import IN, Database, listed
from aiaml_server.index.listing import Stamps, best_hits, keep_matching
from aiaml_server.index.terms import IN_TOPICS, TERM

Scores = dict[int, int]  # the score of each file that has any, by its id in the index


def find(
    database: Database, keywords: Sequence[str], wanted: Filter, part: slice
) -> tuple[Found, Stamps]:
    """Return a part of the hits for cleaned keywords, and the stamps of their files.

    A keyword that occurs nowhere is tried in its other Unicode forms.
    """
    scores: dict[str, Scores] = {}
    totals: Counter[int] = Counter()
    for keyword in keywords:
        forms = (keyword, *other_forms(keyword))
        found = next(filter(None, (scores_of(database, form) for form in forms)), {})
        scores[keyword] = found
        totals.update(found)
    files = keep_matching(database, set(totals), wanted)
    return best_hits(database, {file: totals[file] for file in files}, scores, part)


def scores_of(database: Database, keyword: str, *, composed: bool = False) -> Scores:
    """Return the score of each file for one keyword in lower case.

    Args:
        database: the index, inside of one transaction.
        keyword: taken as it is.
        composed: whether to look in the texts in NFC.
    """
    not_exact = {file for (file,) in database.rows("SELECT id FROM files WHERE NOT is_exact")}
    scores: Scores = {}
    to_read: set[int] = set()
    part = max(TERM.findall(keyword), key=len, default="")
    terms = list(database.terms_with(part)) if part else []
    # Looking up more than a fifth of the terms takes longer than counting in all texts.
    can_look_up = part and len(terms) < 100 + database.term_count // 5
    for term, files in database.postings(f"term {IN}", listed(terms)) if can_look_up else ():
        if part != keyword:
            to_read.update(files)
            continue
        weight = 1 + term.endswith(IN_TOPICS)
        points = term.count(keyword) * weight + (term.rstrip(IN_TOPICS) == keyword)
        for file, times in Counter(files).items():
            scores[file] = scores.get(file, 0) + times * points
    for file in not_exact:
        scores.pop(file, None)
    which = [listed(to_read | not_exact)] if can_look_up else []
    where = f"WHERE id {IN}" if which else ""
    for file, *texts in database.rows(
        f"SELECT id, topics, content, user, agent FROM texts {where}", which
    ):
        topics, *others = map(normalize, texts) if composed else texts
        if points := score(((2, topics), *((1, text) for text in others)), keyword):
            scores[file] = points
    return scores
