"""The model that is on this machine, for whoever else searches by meaning."""

from __future__ import annotations

from dataclasses import replace

from . import config, place
from .model import Embedder, Model

_SECONDS = 30.0  # in which a model is loaded on a slow machine


def embedder() -> Embedder | None:
    """Return the person's model; None where it is not here or cannot be loaded. None is fetched."""
    home = place.home()
    wanted = replace(config.load(home), download=False)
    return Model(wanted, home / "models").ready(_SECONDS)
