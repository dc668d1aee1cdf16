"""What an agent's first run leaves, in the file that is named."""

import sys

from aiaml_server.toolsets.compartments import Compartments

with Compartments(sys.argv[1]) as memory:
    memory.save("session", "The customer wants invoices in euros.", tags=["invoice", "euro"])
    memory.save("session", "Ada decides on prices.", category="person", metadata={"from": "mail"})
    memory.save("plan", "Convert the old orders.", category="step", priority=8)
    memory.get("plan")
with Compartments(sys.argv[1], session="refunds") as memory:
    memory.save("session", "Refunds wait for the bank.")
