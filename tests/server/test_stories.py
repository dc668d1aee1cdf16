"""The specification's four workflow examples, each session a fresh process as in real life."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from client import Client


def session(base: Path, tool: str, **arguments: Any) -> Any:
    """Start a server, make one call, leave."""
    with Client(base) as client:
        return client.call(tool, **arguments)


def recalled(base: Path, *keywords: str) -> list[str]:
    """Think, recall what was found, return the contents."""
    with Client(base) as client:
        hits = client.call("think", keywords=list(keywords))
        entries = client.call("recall", memory_ids=[hit["id"] for hit in hits])
        return [entry["content"] for entry in entries]


def test_a_preference_is_known_in_a_later_session(tmp_path: Path) -> None:
    """Personal preference management."""
    content = (
        "User prefers detailed project breakdowns and likes to review progress weekly. "
        "Prefers structured task lists over general descriptions."
    )
    topics = ["preferences", "work", "style"]
    session(tmp_path, "remember", agent="claude", user="john_doe", topics=topics, content=content)
    assert recalled(tmp_path, "preferences", "work") == [content]


def test_a_project_goes_on_where_it_was(tmp_path: Path) -> None:
    """Project context continuity: both memories, and what was asked last ranks by relevance."""
    plan = (
        "Home renovation project focusing on kitchen remodel. Budget constraint of $15,000. "
        "Prefers modern farmhouse style. Timeline: 3 months."
    )
    progress = (
        "Cabinets ordered from Home Depot. Installation scheduled for next week. Still need to "
        "select countertops - considering quartz within budget."
    )
    who = {"agent": "claude", "user": "sarah_m"}
    session(tmp_path, "remember", **who, topics=["renovation", "kitchen", "budget"], content=plan)
    session(
        tmp_path, "remember", **who, topics=["renovation", "kitchen", "progress"], content=progress
    )
    assert recalled(tmp_path, "renovation", "kitchen") == [plan, progress]
    assert recalled(tmp_path, "countertops", "progress") == [progress]


def test_one_agent_uses_what_another_stored(tmp_path: Path) -> None:
    """Multi-agent collaboration, with both agents' servers running at once."""
    content = (
        "API project uses FastAPI framework with SQLAlchemy ORM. Database: PostgreSQL. "
        "Authentication via JWT tokens. Prefers type hints and comprehensive docstrings."
    )
    with Client(tmp_path) as coding, Client(tmp_path) as writing:
        stored = coding.call(
            "remember",
            agent="coding_assistant",
            user="dev_mike",
            topics=["project", "architecture", "python"],
            content=content,
        )
        (hit,) = writing.call("think", keywords=["project", "API"])
        # project: topic 2 + content 1 + whole words 2; api: "API" and "FastAPI" 2 + whole word 1
        assert hit == {**hit, "id": stored["memory_id"], "relevance_score": 8}
        (memory,) = writing.call("recall", memory_ids=[hit["id"]])
        assert (memory["agent"], memory["content"]) == ("coding_assistant", content)


def test_a_tutor_goes_on_where_the_lesson_ended(tmp_path: Path) -> None:
    """Learning progress tracking."""
    content = (
        "Completed basic syntax and control structures. Understands functions and modules. "
        "Struggles with object-oriented concepts - responds well to visual analogies."
    )
    topics = ["python", "learning", "progress"]
    session(
        tmp_path, "remember", agent="tutor", user="student_alex", topics=topics, content=content
    )
    assert recalled(tmp_path, "python", "learning", "progress") == [content]
