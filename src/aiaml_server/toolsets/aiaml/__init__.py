"""The default toolset: `remember`, `think` and `recall`."""

from aiaml_server.settings import SETTINGS
from aiaml_server.toolset import Manifest

MANIFEST = Manifest(
    name="aiaml",
    summary="one memory for every agent: remember, think, recall",
    tools=("remember", "think", "recall"),
    settings=SETTINGS,
    build="aiaml_server.server.tools:build",
    hooks={
        "session_start": "aiaml_server.server.hooks.memories:session_start",
        "prompt": "aiaml_server.server.hooks.memories:prompt",
    },
)
