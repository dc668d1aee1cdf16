"""The index's numbers, each with the sum behind it. None of them changes an answer, only its price.

Times are those of one processor, measured with 10,000 memories of 1.5 KB (`benchmarks/corpus.py`)
and Python 3.11, each kind of step alone.
"""

from __future__ import annotations

# --- what changed ---------------------------------------------------------------------------------

SWEEP = 10_000
"""Files whose stamps are compared at a time: 3 µs for a stamp and 1 µs for what is known, so 30
to 45 ms."""

SWEEP_SECONDS = 4.0
"""From one sweep behind answers to the next, where the system lists touched names: 40 ms in 4 s."""

SWEEP_PART = 250
"""Files that such a sweep compares at a time: 1 ms, which is what a question may have to wait."""

SWEEP_REST = 99
"""For each second that this takes of a processor, seconds until it goes on: 1 % of a core."""

UNTOLD_SECONDS = 1.0
"""For which a slice is compared where it lists none: 4 % of a core, and only at a question."""

SWEEPS = 10
"""Slices that one question waits for at most: 0.4 s, so 100,000 files after ten seconds."""

# --- recording ------------------------------------------------------------------------------------

STEP_BYTES = 8 * 1024 * 1024
"""Of files that one transaction records: 0.6 s for 4,096 of 1.5 KB."""

ADDED = 250
"""Files that are handed to SQLite together. All 4,096 of a transaction took 27 MB more, of which 4
were kept afterwards, in the same time; 50 take a little longer."""

PIECE_BYTES = 128 * 1024
"""Of texts that are tokenized behind an answer at a time: 10 to 15 ms, for which a question may
have to wait; for the recording of what was found in a segment, 0.2 s."""

PIECE_REST = 0.001
"""Seconds between two such pieces, in which a question that waits has its turn."""

TURN = 0.2
"""Seconds in which pieces follow one another at most, where questions come without a pause."""

STILL_SECONDS = 10.0
"""After which others no longer wait for a process that tokenizes, should it have recorded nothing
since; it usually does every 0.6 s."""

STEP_TERMS = 100_000
"""Different terms that are held until they are recorded: 300 bytes each, so 30 MB, and 0.5 s."""

RECENT = 64
"""Memories that are scored as texts at each question before they are tokenized together; those
that a server has yet to tokenize behind its answers may be all.

Reading and scoring 64 takes 0.3 ms a question. Tokenizing and recording one takes 14 ms, since each
of its terms has a page of its own; 64 of them take 49 ms."""

RECENT_BYTES = 1024 * 1024
"""Of such memories together, since scoring takes 1 ms for each megabyte."""

LARGE = 16 * 1024
"""Characters of a text that is not tokenized where three quarters are different terms.

Such are keys, logs and tables. Each megabyte of them would add a megabyte to the vocabulary, and
0.5 ms to the search for every keyword; scoring it as a text takes 1 ms."""

DIFFERENT = 20_000
"""Different terms of a text, from which it is not tokenized either: recording or forgetting one
takes 6 to 8 µs, and so no question waits for a text longer than 0.2 s. A book has fewer."""

MAX_TERM = 600
"""Bytes of a term. A text with a longer one (encoded data) is never tokenized."""

VOCABULARY_BLOCK = 16 * 1024
"""Bytes of the vocabulary that are recorded together: two pages to write for one new term."""

# --- answering ------------------------------------------------------------------------------------

SEGMENT = 4096
"""Documents whose postings lie together. A common term takes a byte for each, half a page; one long
number of 4 bytes for each, 16 KB, is added up in 15 µs."""

COMMON = SEGMENT // 4
"""Occurrences from which a term's postings are a byte for each document of the segment.

Adding up ids takes 41 ns each; adding up the bytes of a segment takes 15 µs and reading the sums
20, so both are equal at some 900, where the ids take half of the room."""

PARTS = 1000
"""Lists of document ids that are added up together: 41 ns an id, and 1 µs for each call."""

KEYWORDS = 300
"""Keywords after which 32 bits might not hold a sum: each of the 4 Mi characters of a file counts
at most three times for each (twice in the topics, once as a word), and 300 x 3 x 4 Mi < 2 ** 32."""

FEW = 8
"""Candidates that are sooner read and scored (5 µs each) than narrowed down by a term (34 µs)."""

WIDE = 7_500
"""Terms that contain a keyword, from which it is sooner counted in all texts (3 µs each) than added
up from their postings (1.6 µs for each term and segment, of 4,096 texts)."""

WIDE_PHRASE = 1_000
"""The same for terms that contain a part of a phrase: what so many terms contain stands in nearly
every text, so that it would be counted in all texts afterwards."""

SCANNED = 3_000
"""Texts that were scored without end in sight, after which the keywords are first counted in all
that are left: 3 µs each, where scoring takes 8. So are those that wait to be tokenized, if they are
more: eight keywords take 11 µs, where scoring takes 18."""

DEARER = 3
"""How many texts a keyword is counted in while one is scored: with fewer candidates, all of these
are scored sooner; and with fewer that wait to be tokenized, since all texts are read for them."""

COMMON_PART = 300
"""Terms that contain a part of a keyword, beyond which it does not narrow the choice.

Postings of 300 terms take 1.3 ms, in which 240 texts are scored; what so many terms contain stands
in nearly every text."""

FIRST = 100
"""Candidates that are scored first (0.5 ms), then twice as many, and so on: the 25 best are usually
among the first hundred, and never are more than twice as many scored as must be."""

TIES = 2000
"""Memories of equal score that are sooner met on the way from the newest than looked up.

Looking one up takes 0.7 µs, a step of the way 0.17 µs. Of 2,000 in 10,000 the 25 newest are met
after 125 steps."""

PART = 1000
"""Hits of a search for all whose texts are held at a time: 1.5 MB."""

ALL_TERMS = 12_000
"""Terms that are sooner found in one pass over all postings (60 ms) than one by one (5 µs each,
with three segments; both grow with these)."""

LISTED = 10_000
"""Files that one reading of all takes at a time: 5 MB."""

LINES = 512
"""Bytes of the vocabulary in which lines are counted at each search; what is before is kept."""

KINDS = 32
"""Different characters beyond ASCII in a text, from which cutting by pattern is faster: each costs
two replacements in the whole text."""

# --- one file for several processes ---------------------------------------------------------------

STALE_SECONDS = 7 * 24 * 3600.0
"""After which a file of another kind of process is deleted, should nobody have used it."""

DESCRIPTORS = 8
"""More than SQLite (3), a list of names, a watch and a file being read take together."""
