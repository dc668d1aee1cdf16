"""`python -m aiaml_server.toolsets.citations`: the command without any installation."""

import sys

from aiaml_server.toolsets.citations.bare import main

if __name__ == "__main__":
    sys.exit(main(prog="citations"))
