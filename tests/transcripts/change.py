"""An editor without a person: `python change.py OLD NEW FILE...` puts NEW for OLD in files."""

import sys
from pathlib import Path

old, new, *names = sys.argv[1:]
for path in map(Path, names):
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
