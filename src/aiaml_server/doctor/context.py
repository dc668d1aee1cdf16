"""What all checks look at: an environment, the settings in it that can be used, a directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from aiaml_server.doctor.scan import FileScan, look
from aiaml_server.errors import InvalidSetting
from aiaml_server.settings import Settings
from aiaml_server.storage.store import Store
from aiaml_server.sync import with_remote_in_use

PREFIX = "AIAML_"


def is_directory(path: Path) -> bool:
    """Say whether a path is a directory; not so `Path.is_dir`, it raises for a name too long."""
    return os.path.isdir(path)  # noqa: PTH112


@dataclass
class Context:
    """What is examined.

    Attributes:
        environ: the environment variables.
        offline: whether the remote is left alone.
        wrong: the settings that cannot be used.
        settings: the others; None when they do not say where the memories are.
        told: the sentences of the settings and of the troubles of sync that a finding has.
    """

    environ: Mapping[str, str] = field(repr=False)
    offline: bool = False
    wrong: dict[str, InvalidSetting] = field(init=False, default_factory=dict)
    settings: Settings | None = field(init=False, default=None)
    told: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Try each variable by itself, so that all that are wrong are named."""
        usable = {key: value for key, value in self.environ.items() if key.startswith(PREFIX)}
        while True:
            try:
                self.settings = Settings.from_environ(usable)
            except InvalidSetting as error:
                self.wrong[error.variable] = error
                if error.variable == "AIAML_MEMORY_DIR":
                    # A stand-in, so that the others are tried; nothing is looked for there.
                    usable[error.variable] = sys.prefix
                else:
                    del usable[error.variable]
            else:
                break
        if self.settings:
            self.settings = with_remote_in_use(self.settings, self.environ)
        if self.settings and self.settings.remote_error:
            self.wrong["AIAML_GITHUB_REMOTE"] = self.settings.remote_error
        if "AIAML_MEMORY_DIR" in self.wrong:
            self.settings = None

    @property
    def base(self) -> Path | None:
        """The directory of the memories, if there is one."""
        base = self.settings.base if self.settings else None
        return base if base and is_directory(base) else None

    @cached_property
    def scan(self) -> FileScan:
        """What one reading of all files showed.

        Raises:
            StoreError: the directory cannot be listed.
        """
        assert self.settings  # noqa: S101 (only asked for where there is a directory)
        return look(Store(self.settings.base))
