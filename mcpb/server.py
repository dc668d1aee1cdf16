"""What Claude Desktop starts."""

import sys

from aiaml_server.cli import main

sys.exit(main(["serve"]))
