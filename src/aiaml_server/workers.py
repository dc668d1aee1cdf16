"""Threads for what may wait for a disk, so that the event loop never does.

A call is handed over and back with one wake-up each and no lock of Python's: the usual pools
(anyio's, asyncio's) take 0.1 ms more, which is a good part of a short answer.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import anyio

MOST = 40

Result = TypeVar("Result")


class _Job(NamedTuple):
    function: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[tuple[Any, BaseException | None]]


class Workers:
    """At most `MOST` daemon threads, each started when all others are busy. Used by one loop.

    Args:
        ready: returns when a call may begin.
    """

    def __init__(self, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        self._ready = ready
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._room = anyio.Semaphore(MOST, fast_acquire=True)
        self._threads = 0

    async def run(self, function: Callable[[], Result]) -> Result:
        """Run a function in a thread; return or raise what it does.

        A caller that is cancelled before its turn goes at once; later, only when the function has
        returned, so that nothing goes on behind its back.
        """
        async with self._room:
            if self._ready:
                await self._ready()
            if self._threads < MOST - self._room.value:
                self._start_thread()
            loop = asyncio.get_running_loop()
            job = _Job(function, loop, loop.create_future())
            self._jobs.put(job)
            with anyio.CancelScope(shield=True):
                await job.done
            result, error = job.done.result()
            if error is not None:
                raise error
            value: Result = result
            return value

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._work, name="worker", daemon=True).start()
        except RuntimeError:  # the system allows no more
            if not self._threads:
                raise
        else:
            self._threads += 1

    def _work(self) -> None:
        while True:
            self._do(self._jobs.get())

    @staticmethod
    def _do(job: _Job) -> None:
        result, error = None, None
        try:
            result = job.function()
        except BaseException as raised:  # noqa: BLE001 (the caller gets it)
            error = raised

        def tell() -> None:
            if not job.done.done():  # else the loop is ending
                job.done.set_result((result, error))

        with suppress(RuntimeError):  # the loop is gone
            job.loop.call_soon_threadsafe(tell)
