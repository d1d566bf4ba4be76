"""The lists of clients and executors, and the strategies that pair them. No module of the package imports a library.

Command line, documentation, Compose services, dashboards and conformance tests read these lists. `plugins` loads the
code of users.
"""

from clientlab.strategies.availability import merged, unavailable
from clientlab.strategies.capabilities import check_capabilities
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.known import client_spec, executor_spec, is_of_file
from clientlab.strategies.pairs import DEFAULT_CONCURRENCY, STRATEGIES, Strategy
from clientlab.strategies.resolve import check_settings, chosen, find, load, settings_of, with_several
from clientlab.strategies.specs import ClientSpec, ExecutorSpec

__all__ = [
    "CLIENTS",
    "DEFAULT_CONCURRENCY",
    "EXECUTORS",
    "STRATEGIES",
    "ClientSpec",
    "ExecutorSpec",
    "Strategy",
    "check_capabilities",
    "check_settings",
    "chosen",
    "client_spec",
    "executor_spec",
    "find",
    "is_of_file",
    "load",
    "merged",
    "settings_of",
    "unavailable",
    "with_several",
]
