"""BM25: how well a memory matches a word of a question.

    points = rarity x tf x (K1 + 1) / (tf + K1 x (1 - B + B x length / mean length))

where `tf` is how often the word occurs in the memory, and the rarity of a word that n of N memories
have is ln(1 + (N - n + 0.5) / (n + 0.5)), as in Lucene. K1 and B are those of Trotman, Puurula and
Burgess, "Improvements to BM25 and Language Models Examined" (ADCS 2014).
"""

from __future__ import annotations

from math import log

K1, B = 0.9, 0.4
TOPIC_WEIGHT = 2
"""How many occurrences one in the topics counts for."""


def rarity(memories: int, holding: int) -> float:
    """Return the rarity of a word, above 0, by the number of memories and of those with it."""
    return log(1 + (memories - holding + 0.5) / (holding + 0.5))


def saturation(frequency: int, length: float) -> float:
    """Return the factor of the rarity.

    Args:
        frequency: how often the word occurs.
        length: of the memory, in relation to the mean.
    """
    return frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length))
