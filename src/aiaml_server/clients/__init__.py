"""The AI clients whose configuration files `aiaml install` writes.

`registry` has the table of clients, `edit` connects them, `hooks` writes their hooks. A file is
edited in place (`jsonc`, `toml`), with a backup (`files`). `launch` says what an entry starts.
"""

from aiaml_server.clients.edit import (
    ENTRY,
    Change,
    Connection,
    connect,
    connections,
    disconnect,
    project_variables,
    save,
    snippet,
)
from aiaml_server.clients.hooks import HOSTS, add_hooks, remove_hooks
from aiaml_server.clients.registry import BY_NAME, CLIENTS, Client, Machine, this_machine
from aiaml_server.clients.text import ConfigError

__all__ = [
    "BY_NAME",
    "CLIENTS",
    "ENTRY",
    "HOSTS",
    "Change",
    "Client",
    "ConfigError",
    "Connection",
    "Machine",
    "add_hooks",
    "connect",
    "connections",
    "disconnect",
    "project_variables",
    "remove_hooks",
    "save",
    "snippet",
    "this_machine",
]
