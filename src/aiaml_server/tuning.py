"""The index's numbers, each with the sum behind it. None of them changes an answer, only its price.

Times were measured with 10,000 memories of 1.5 KB (`benchmarks/`) on 2 cores and Python 3.11.
"""

from __future__ import annotations

# --- what changed ---------------------------------------------------------------------------------

SWEEP = 10_000
"""Files whose stamps are compared at a time: 2 µs for `lstat` and 1 µs around it, so 30 ms."""

SWEEP_SECONDS = 4.0
"""Between two sweeps, where the system lists touched names: 30 ms in 4 s are 0.8 % of a core."""

UNTOLD_SECONDS = 1.0
"""For which a slice is compared where it lists none: 3 % of a core, and only at a question."""

SWEEPS = 10
"""Slices that one question waits for at most: 0.3 s, so up to 100,000 files after ten seconds."""

# --- recording ------------------------------------------------------------------------------------

STEP_BYTES = 8 * 1024 * 1024
"""Of files that one transaction records: 2 s at 4 MB/s, and 60 MB of terms and pages."""

STEP_TERMS = 200_000
"""Different terms that are held until they are recorded: 300 bytes each, so 60 MB."""

RECENT = 64
"""Memories that are scored as texts at each question before they are tokenized together.

Scoring 64 takes 0.4 ms a question; tokenizing one writes as many blocks of the vocabulary, sums and
pages as tokenizing dozens: 15 ms against 20 ms."""

RECENT_BYTES = 1024 * 1024
"""Of such memories together, since scoring takes 1 ms for each megabyte."""

LARGE = 16 * 1024
"""Characters of a text that is not tokenized where three quarters are different terms.

Such are keys, logs and tables. Each megabyte of them adds a megabyte to the vocabulary, and 0.1 ms
to the search for every keyword; scoring it as a text takes 1 ms, only while it is there."""

DIFFERENT = 20_000
"""Different terms of a text, from which it is not tokenized either: recording or forgetting one
takes 8 µs, and so no question waits for a text longer than 0.2 s. A book has fewer."""

MAX_TERM = 600
"""Bytes of a term. A text with a longer one (encoded data) is never tokenized."""

VOCABULARY_BLOCK = 16 * 1024
"""Bytes of the vocabulary that are recorded together: two pages to write for one new term."""

# --- answering ------------------------------------------------------------------------------------

SEGMENT = 4096
"""Documents whose postings lie together. A common term takes a byte for each, so half a page;
one long number of 4 bytes for each, 16 KB, adds up in 3 µs."""

COMMON = SEGMENT // 4
"""Occurrences from which a term's postings are a byte for each document of the segment.

A document id takes 2 bytes, so both are as large at a half; adding up ids one by one takes 50 ns
each, adding up a segment 30 µs, so from some 600 on the bytes are faster."""

PARTS = 1000
"""Lists of document ids that are added up together: 50 ns an id, and 1 µs for each call."""

KEYWORDS = 300
"""Keywords after which 32 bits might not hold a sum: 4 MiB of one letter count 3 x 4 Mi for it in
the topics; 300 keywords stay below 2 to the 32."""

FEW = 8
"""Candidates that are sooner scored (3 µs each) than narrowed down by another term (30 µs)."""

COMMON_PART = 300
"""Terms that contain a part of a keyword, beyond which it does not narrow the choice.

Postings of 300 terms take 1 ms; what so many terms contain stands in nearly every text."""

FIRST = 100
"""Candidates that are scored first, then twice as many, and so on: the 25 best are usually among
the first hundred, and never are more than twice as many scored as must be."""

TIES = 2000
"""Memories of equal score that are sooner met on the way from the newest than looked up.

Looking up takes 2 µs each; the way takes 0.3 µs a memory, and ends with the 25th."""

VALUES = (1, 10, 100)
"""Values that one statement asks for. SQLite keeps each of the three prepared (50 µs)."""

ALL_TERMS = 5000
"""Terms that are sooner found in one pass over all postings (1 µs each) than one by one (10 µs)."""

LISTED = 10_000
"""Files that one reading of all takes at a time: 5 MB."""

LINES = 512
"""Bytes of the vocabulary in which lines are counted at each search; what is before is kept."""

KINDS = 32
"""Different characters beyond ASCII in a text, from which cutting by pattern is faster: each costs
two replacements in the whole text."""

# --- one file for several processes ---------------------------------------------------------------

TRY = 0.1
"""Seconds that SQLite waits for another process; more where the machine is busy, and so is that."""

PATIENCE = 15
"""Such tries, 1.5 s, in which whoever holds the file gets nowhere, until it is given up."""

LITTLE_PATIENCE = 3
"""The same for who is in a hurry: most hold the file for milliseconds."""

BEAT = 0.2
"""Seconds after which whoever writes shows again that it goes on: seven times in that patience."""

STALE_SECONDS = 7 * 24 * 3600.0
"""After which a file of another kind of process is deleted, should nobody have used it."""

DESCRIPTORS = 8
"""More than SQLite (3), a list of names, a watch and a file being read take together."""
