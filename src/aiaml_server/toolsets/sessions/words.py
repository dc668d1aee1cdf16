"""The descriptions of the five tools, as agents read them."""

START_SESSION = """\
Creates an agent's log of a date, or opens the one that is there.

What is missing is made: the directory, the schema of logs and an empty summary. Nothing that \
exists is changed. Answers with the log's path, whether it is new, and what is in it already."""

APPEND_ENTRY = """\
Appends to one section of an agent's log of a date, behind what is there; nothing is rewritten.

The sections are those of the repository's schema, usually Context, Discussion Summary, Decisions, \
Open Questions and Next Actions; a wrong name is answered with the right ones. Begin each entry \
with `- `, so that those of two branches stay apart when git merges them. Without a `date` it is \
today's log; where that was not started, the answer names the newest."""

READ_SUMMARY = """\
Returns an agent's lasting summary as markdown.

It changes nothing; where there is no summary yet, it is what an empty one would say."""

UPDATE_SUMMARY = """\
Changes one section of an agent's lasting summary.

`append` puts the content behind what is there, `replace` puts it in its place. All other sections \
stay as they are; `replace` with an empty content empties the section. Meant for what the person \
has judged to be lasting."""

LIST_SESSIONS = """\
Lists an agent's session logs, newest first, by their files' names."""
