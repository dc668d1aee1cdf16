"""Write two session logs of an agent into the repository that is named."""

import sys
from pathlib import Path

from aiaml_server.toolsets.sessions.service import AgentMemory

memory = AgentMemory(str(Path(sys.argv[1]).resolve()), "aristotle")
for date in ("2025-01-15", "2025-01-20"):
    memory.start_session(date)
memory.append_entry("Decisions", "- Prices are in cents: rounding lost money.", "2025-01-20")
memory.update_summary("Decisions", "- Money is in cents.", "append")
