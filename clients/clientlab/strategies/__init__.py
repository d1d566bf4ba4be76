"""The lists: clients, executors, and the strategies that pair them.

CLI, README, conformance test and dashboards read their names here. Nothing here imports a library.
"""

from clientlab.strategies.abilities import check_abilities
from clientlab.strategies.availability import merged, unavailable
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.lookup import check_settings, chosen, find, load, settings_of
from clientlab.strategies.pairs import DEFAULT_CONCURRENCY, STRATEGIES, Strategy
from clientlab.strategies.plugins import client_row, executor_row
from clientlab.strategies.rows import ClientRow, ExecutorRow

__all__ = [
    "CLIENTS",
    "DEFAULT_CONCURRENCY",
    "EXECUTORS",
    "STRATEGIES",
    "ClientRow",
    "ExecutorRow",
    "Strategy",
    "check_abilities",
    "check_settings",
    "chosen",
    "client_row",
    "executor_row",
    "find",
    "load",
    "merged",
    "settings_of",
    "unavailable",
]
