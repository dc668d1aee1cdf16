"""`python -m aiaml_server`."""

import sys

from aiaml_server.cli import main

if __name__ == "__main__":
    sys.exit(main())
