"""Settings files: a table of keys, each with what its value must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Key(NamedTuple):
    """One key of a settings file.

    Attributes:
        attribute: what the settings call it.
        fits: whether a value is as it must be.
        rule: that in words, such as "a whole number from 1".
    """

    attribute: str
    fits: Callable[[Any], bool]
    rule: str


def bool_key(attribute: str) -> Key:
    """Return a key that is true or false."""
    return Key(attribute, lambda value: type(value) is bool, "true or false")


def int_key(attribute: str, least: int, most: int, rule: str = "") -> Key:
    """Return a key that is a whole number."""

    def fits(value: Any) -> bool:
        return type(value) is int and least <= value <= most

    return Key(attribute, fits, rule or f"a whole number from {least}")


def number_key(attribute: str, least: float, most: float, rule: str) -> Key:
    """Return a key that is a number."""

    def fits(value: Any) -> bool:
        return type(value) in (int, float) and least <= value <= most

    return Key(attribute, fits, rule)


class Keys:
    """The keys of a file, with a dot for each level: `{"search.default_limit": Key(…)}`."""

    def __init__(self, keys: Mapping[str, Key]) -> None:
        self._keys = keys
        self._maps: set[str] = set()
        for key in keys:
            while key := key.rpartition(".")[0]:
                self._maps.add(key)

    def is_map(self, key: str) -> bool:
        """Say whether other keys are below this one."""
        return key in self._maps

    def attribute(self, key: str, value: Any) -> str:
        """Return what the settings call a key with a value.

        Raises:
            ValueError: there is no such key, or the value is not as it must be; the sentence
                begins with the key.
        """
        known = self._keys.get(key)
        if known is None:
            raise ValueError(f"{key[:200]} is no known key; {self._hint(key)}")
        if not known.fits(value):
            raise ValueError(f"{key} is {value!r:.200}; it must be {known.rule}")
        return known.attribute

    def _hint(self, key: str) -> str:
        from difflib import get_close_matches  # noqa: PLC0415 (hardly ever needed)

        there = [*self._keys, *self._maps]
        last = key.rpartition(".")[2]
        near = get_close_matches(key, there, 1, 0.5) or get_close_matches(last, there, 1, 0.4)
        return f"did you mean {near[0]}?" if near else f"there are {', '.join(self._keys)}"
