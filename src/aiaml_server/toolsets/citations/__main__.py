"""`python -m aiaml_server.toolsets.citations`: the command line without any dependency."""

import sys

from aiaml_server.toolsets.citations.cli import main

if __name__ == "__main__":
    sys.exit(main())
