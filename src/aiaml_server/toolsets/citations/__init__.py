"""`citations`: memories of a code base that cite its lines, and know when they are stale."""
