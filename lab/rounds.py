"""One round of one measure on one server."""

from __future__ import annotations

import importlib
import os
import pkgutil
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from . import measures, results
from .adapter import Adapter
from .client import GoneError, RefusedError
from .disk import remove
from .environments import MissingError

LENGTHS = ("LAB_CUTS", "LAB_KILLS", "LAB_SOAK", "LAB_TEXTS")  # how much a round does
HELPERS = {"person", "texts"}


def modules() -> dict[str, ModuleType]:
    """Return every measure by its name."""
    names = [each.name for each in pkgutil.iter_modules(measures.__path__)]
    return {
        name: importlib.import_module(f"{measures.__name__}.{name}")
        for name in names
        if name not in HELPERS
    }


def one(server: Adapter, measure: str, number: int, seed: int) -> results.Round:
    """Do one round in a folder of its own, whatever happens in it."""
    module = modules()[measure]
    root = Path(tempfile.mkdtemp(prefix="lab-"))
    place = root / "place"
    place.mkdir()
    begun, worked = time.monotonic(), _worked()
    random = Random(f"{seed} {measure} {number}")  # the same for all servers
    figures: dict[str, Any]
    try:
        figures = module.measure(server, place, random, number)
    except MissingError as error:
        figures = {"not measured": str(error)}
    except NotImplementedError:
        figures = {"not measured": "the server does not offer it, or the adapter says why not"}
    except (GoneError, RefusedError, OSError, ValueError) as error:
        figures = {"broke": f"{type(error).__name__}: {error}"[:500]}
    finally:
        machine = results.machine(root)
        remove(root)
    seconds = round(time.monotonic() - begun, 1)
    set_by = [f"{name}={os.environ[name]}" for name in LENGTHS if os.environ.get(name)]
    words = [*set_by, f"python -m lab run --servers {server.name} --measures {measure}"]
    words += [f"--seed {seed} --rounds {number + 1}"]
    return results.Round(
        server=server.name,
        version=server.version,
        measure=measure,
        number=number,
        seed=seed,
        figures=figures,
        seconds=seconds,
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M"),
        load=round(os.getloadavg()[0], 1),
        machine=machine,
        command=" ".join(words),
        processor=round(_worked() - worked, 1),
    )


def _worked() -> float:
    """Return the seconds of processor that this and all that it started and saw end have taken."""
    return sum(os.times()[:4])


def brief(each: results.Round) -> str:
    """Return a round's figures in a line."""
    shown = {name: value for name, value in each.figures.items() if name != "samples"}
    return f"{', '.join(f'{name} {value}' for name, value in shown.items())} ({each.seconds} s)"
