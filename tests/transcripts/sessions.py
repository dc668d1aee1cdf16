"""Two sessions of an agent, in the repository that is named."""

import sys
from pathlib import Path

from aiaml_server.toolsets.sessions.memory import AgentMemory

memory = AgentMemory(str(Path(sys.argv[1]).resolve()), "aristotle")
for date in ("2025-01-15", "2025-01-20"):
    memory.start(date)
memory.append("Decisions", "- Prices are kept in cents: rounding lost money twice.", "2025-01-20")
memory.update("Decisions", "- Money is in cents.", "append")
