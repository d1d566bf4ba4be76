"""The lists of clients and executors, and the strategies that pair them. No module of the package imports a library.

Command line, documentation, Compose services, dashboards and conformance tests read these lists. The package itself
loads no code of a user: `clientlab.strategies.plugins` does, which only the command line and the measured process use.
"""

from clientlab.strategies.availability import merged, unavailable
from clientlab.strategies.capabilities import check_capabilities
from clientlab.strategies.clients import CLIENTS, EVERY_CLIENT, STREAM_CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.known import client_spec, executor_spec, load
from clientlab.strategies.pairs import DEFAULT_CONCURRENCY, LISTED, STRATEGIES, STREAM_STRATEGIES, Strategy
from clientlab.strategies.plugin_names import is_of_file
from clientlab.strategies.resolve import check_settings, chosen, find, settings_of, with_several
from clientlab.strategies.retrying import policies_of, retries, retry_of, retry_package
from clientlab.strategies.specs import ClientSpec, ExecutorSpec

__all__ = [
    "CLIENTS",
    "DEFAULT_CONCURRENCY",
    "EVERY_CLIENT",
    "EXECUTORS",
    "LISTED",
    "STRATEGIES",
    "STREAM_CLIENTS",
    "STREAM_STRATEGIES",
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
    "policies_of",
    "retries",
    "retry_of",
    "retry_package",
    "settings_of",
    "unavailable",
    "with_several",
]
