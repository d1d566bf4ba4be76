"""Names of strategies → client × executor. No module of the package imports an HTTP library.

`registry`: the clients and executors. `resolve`: the strategies, and how one is found. `availability`: whether one can
be measured here. `plugins`: the code of users.
"""

from clientlab.strategies.availability import (
    check_capabilities,
    check_settings,
    chosen,
    merged,
    settings_of,
    unavailable,
)
from clientlab.strategies.plugins import client_spec, executor_spec, is_of_file, load
from clientlab.strategies.registry import CLIENTS, EXECUTORS, ClientSpec, ExecutorSpec
from clientlab.strategies.resolve import DEFAULT_CONCURRENCY, STRATEGIES, Strategy, find, with_several

__all__ = [
    "CLIENTS", "DEFAULT_CONCURRENCY", "EXECUTORS", "STRATEGIES", "ClientSpec", "ExecutorSpec", "Strategy",
    "check_capabilities", "check_settings", "chosen", "client_spec", "executor_spec", "find", "is_of_file", "load",
    "merged", "settings_of", "unavailable", "with_several",
]  # fmt: skip
