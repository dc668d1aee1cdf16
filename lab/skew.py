"""A clock that is wrong by so many seconds, for one program and its children.

Only the time of day is moved, in programs that ask the C library for it; how long they sleep is as
it was. (libfaketime 0.9.10 makes Python's own `sleep` fail since 3.11: tried 2026-11-25.)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache

from .environments import cache as cache_folder

SOURCE = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long skew(void) {
    const char *text = getenv("LAB_SKEW");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int result = syscall(SYS_clock_gettime, clock, at);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        at->tv_sec += skew();
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


@cache
def _library() -> str:
    """Return where the library is, made on first use; empty where there is no compiler."""
    compiler = shutil.which("cc") or ""
    if sys.platform != "linux" or not compiler:
        return ""
    place = cache_folder()
    made = place / "skew.so"
    if not made.exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "skew.c").write_text(SOURCE)
        words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(place / "skew.c")]
        subprocess.run(words, capture_output=True, check=False)
    return str(made) if made.exists() else ""


def by(seconds: int) -> Mapping[str, str]:
    """Return the environment in which a clock is wrong by that much; empty if none can be."""
    library = _library()
    return {"LD_PRELOAD": library, "LAB_SKEW": str(seconds)} if library else {}
