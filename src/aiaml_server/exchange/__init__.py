"""Memories in from other systems, and out to files.

A source is read by the reader of its kind (`kinds`), which finds notes and says what it skips; a
plan (`plan`) makes memories of them and leaves out what the bank has. The other way, `shapes` and
`page` turn memories into the bytes of a file. Nothing here prints, asks or writes.
"""
