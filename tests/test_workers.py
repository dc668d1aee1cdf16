"""Calls that wait for a disk run beside each other, and not in the event loop."""

from __future__ import annotations

import asyncio
import threading
import time

import anyio
import pytest

from aiaml_server.workers import MOST, Workers


def test_each_call_gets_what_its_function_gives_or_raises() -> None:
    """Far more calls than threads."""

    async def run() -> list[int | BaseException]:
        workers = Workers()
        calls = [workers.run(lambda number=number: 60 // number) for number in range(5 * MOST)]  # type: ignore[misc]
        results: list[int | BaseException] = await asyncio.gather(*calls, return_exceptions=True)
        return results

    zeroth, *others = asyncio.run(run())
    assert isinstance(zeroth, ZeroDivisionError)
    assert others == [60 // number for number in range(1, 5 * MOST)]


def test_a_slow_call_holds_neither_the_loop_nor_another_call_up() -> None:
    """As many as there are threads may be slow."""
    release = threading.Event()

    async def run() -> None:
        workers = Workers()
        slow = [asyncio.create_task(workers.run(release.wait)) for _ in range(MOST - 1)]
        assert await asyncio.wait_for(workers.run(lambda: "quick"), 10) == "quick"
        assert not any(task.done() for task in slow)
        release.set()
        assert await asyncio.gather(*slow) == [True] * len(slow)

    asyncio.run(run())


def test_threads_are_used_again() -> None:
    """One call after the other needs one thread."""

    async def run() -> set[int]:
        workers = Workers()
        return {await workers.run(threading.get_ident) for _ in range(20)}

    assert len(asyncio.run(run())) == 1


def test_a_cancelled_call_ends_what_it_began() -> None:
    """Who cancels goes on when the function has returned, so nothing goes on behind its back."""
    ended: list[float] = []

    def slow() -> None:
        time.sleep(0.3)
        ended.append(time.monotonic())

    async def run() -> None:
        workers = Workers()
        with anyio.CancelScope() as scope:
            asyncio.get_running_loop().call_later(0.1, scope.cancel)
            await workers.run(slow)
        assert ended
        assert await workers.run(lambda: "next") == "next"

    asyncio.run(run())


def test_a_call_cancelled_before_its_turn_is_not_begun() -> None:
    """Otherwise an end would have to wait for everything that was ever asked."""
    begun: list[int] = []

    def slow() -> None:
        begun.append(1)
        time.sleep(0.2)

    async def run() -> float:
        workers = Workers()
        with anyio.CancelScope() as scope:
            asyncio.get_running_loop().call_later(0.1, scope.cancel)
            async with anyio.create_task_group() as group:
                for _ in range(10 * MOST):
                    group.start_soon(workers.run, slow)
        return await workers.run(time.monotonic)

    started = time.monotonic()
    assert asyncio.run(run()) - started < 1.5
    assert len(begun) == MOST


def test_no_exception_leaves_its_caller_waiting() -> None:
    """Not even the one that coroutines may not raise."""

    async def run() -> None:
        with pytest.raises(RuntimeError):
            await asyncio.wait_for(Workers().run(lambda: next(iter(()))), 10)

    asyncio.run(run())


def test_a_call_fails_when_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not left waiting for the first one; where there is one already, it waits for that."""

    async def run() -> None:
        workers = Workers()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", _refuse)
            with pytest.raises(RuntimeError, match="new thread"):
                await workers.run(lambda: 1)
        assert await workers.run(lambda: 2) == 2
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", _refuse)
            calls = [workers.run(lambda: time.sleep(0.1)) for _ in range(3)]
            assert await asyncio.gather(*calls) == [None] * 3

    def _refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    asyncio.run(run())
