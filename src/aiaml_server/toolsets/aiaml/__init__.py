"""The default toolset: `remember`, `think` and `recall`."""

from aiaml_server.settings import VARIABLES
from aiaml_server.toolset import Manifest

MANIFEST = Manifest(
    name="aiaml",
    summary="one memory for every agent: remember, think, recall",
    tools=("remember", "think", "recall"),
    variables=VARIABLES,
    build="aiaml_server.server.tools:build",
)
