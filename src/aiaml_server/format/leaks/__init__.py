"""Passwords and keys in what people and agents write, known by their form or by their name.

    table      what secrets look like: the rows of forms.toml
    judging    whether a value was drawn at random, or written as an example
    finding    the first secret in a text

The table is read when a text is looked into that may hold a secret, and never before.
"""

from __future__ import annotations

from aiaml_server.format.leaks.finding import Leak, find, leak, objection

__all__ = ["Leak", "find", "leak", "objection"]
