"""Makes a repository with two memories, then changes the code that they cite."""

import sys
from pathlib import Path

from aiaml_server.toolsets.citations import Citation, Link, MemoryService

CODE = (
    "def price(order):\n    return sum(order)  # in cents\n\n\ndef vat(order):\n    return 0.19\n"
)

root = Path(sys.argv[1])
(root / "prices.py").write_text(CODE, encoding="utf-8")
memories = MemoryService(root)
content = (
    "**Fact**: `price()` returns cents.\n\n**Reasoning**: Rounding euros lost money twice.\n\n"
    "**Action**: Divide by 100 only where a price is shown."
)
cents = memories.save("Prices are in cents", content, [Citation("prices.py", 2)], tags=["billing"])
content = (
    "**Fact**: There is one rate.\n\n**Reasoning**: The shop sells books no more.\n\n"
    "**Action**: Ask before adding another."
)
link = Link("related", cents["id"])
memories.save("There is one rate of VAT", content, [Citation("prices.py", 6)], [link])
(root / "prices.py").write_text(f"import math\n\n{CODE.replace('0.19', '0.2')}", encoding="utf-8")
