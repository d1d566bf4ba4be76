"""The lists of clients and executors, and the strategies that pair them. No module of the package imports a library.

The package loads no code of a user: `clientlab.strategies.plugins` does, which only the command line and the measured
process use.
"""

from clientlab.strategies.availability import merged, unavailable
from clientlab.strategies.capabilities import check_capabilities
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.known import client_spec, executor_spec
from clientlab.strategies.pairs import DEFAULT_CONCURRENCY, STRATEGIES, Strategy
from clientlab.strategies.plugin_names import is_of_file
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
