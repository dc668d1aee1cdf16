"""Memories with an index in Chroma, in an environment that has it; prints what happened as JSON."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from aiaml_server.toolsets.citations import MemoryService
from aiaml_server.toolsets.citations.chroma import ChromaIndex
from aiaml_server.toolsets.citations.errors import Unavailable

MEANINGS = (("money", "price", "cents", "euros"), ("car", "automobile", "vehicle"), ("tea",))


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Stand in for a model: words of one meaning point in one direction."""
    found = []
    for text in texts:
        words = text.lower().split()
        vector = [0.01 + sum(words.count(each) for each in meaning) for meaning in MEANINGS]
        length = math.hypot(*vector)
        found.append([each / length for each in vector])
    return found


def opened(root: Path) -> MemoryService:
    """Open the memories with the stand-in for a model."""
    return MemoryService(root, ChromaIndex(root / ".chroma", "memories", embed))


def main(root: Path) -> None:
    """Save, search, add by another process, change by hand, delete, lose the index."""
    if sys.argv[2:] == ["other"]:
        opened(root).save("Vehicle tax", "every automobile")
        return
    seen: dict[str, object] = {}
    memories = opened(root)
    car = memories.save("Car", "the automobile")["id"]
    memories.save("Prices", "in cents")
    seen["by meaning"] = memories.search("vehicle").value[0]["id"] == car
    seen["not by words"] = [hit["id"] for hit in MemoryService(root).search("vehicle").value]
    both = memories.search("automobile price").value
    seen["once each"] = len(both) == len({hit["id"] for hit in both}) == 2
    seen["scores"] = all(0 <= hit["score"] <= 1 for hit in both)
    subprocess.run([sys.executable, __file__, str(root), "other"], check=True)
    found = [hit["subject"] for hit in memories.search("vehicle").value]
    seen["what another process added"] = "Vehicle tax" in found
    (root / "memories" / f"{car}.md").unlink()
    found = [hit["subject"] for hit in memories.search("vehicle").value]
    seen["a deleted file is no hit"] = "Car" not in found
    seen["sync"] = memories.sync_index()
    seen["sync again"] = memories.sync_index()
    words = ["git", "-C", str(root), "status", "--porcelain", "-uall"]
    status = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    seen["git status"] = sorted({line[3:].partition("/")[0] for line in status.splitlines()})
    unnamed = ChromaIndex(root / ".chroma", "memories")
    try:
        unnamed.search("vehicle", 3)
        seen["without a model"] = ""
    except Unavailable as error:
        seen["without a model"] = str(error)
    seen["healthy"] = memories.index.health_check()
    other = MemoryService(root, ChromaIndex(root / ".chroma", "memories", lambda _: [[1.0]]))
    seen["another model"] = not other.index.health_check() and bool(other.search("tax").notes)
    sys.stdout.write(json.dumps(seen))


main(Path(sys.argv[1]))
