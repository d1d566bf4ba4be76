"""The list of what is generated. A new entry needs a function that returns the text, and a line in `GENERATED`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from clientlab.results.document import schema
from findings import atlas as atlas_page
from findings import chooser, recipes
from generate import (
    atlas,
    capabilities,
    cli,
    compose,
    dashboards,
    experiments,
    faults,
    figures,
    findings,
    manifests,
    metrics,
    retries,
    rules,
    strategies,
)
from generate.blocks import Generated

ROOT = Path(__file__).parents[1]

GENERATED: tuple[Generated, ...] = (
    Generated("docs/strategies.md", strategies.strategy_table, marker="strategies"),
    Generated("docs/strategies.md", strategies.client_table, marker="clients"),
    Generated("docs/known-limits.md", strategies.quirk_table, marker="quirks"),
    Generated("docs/strategies.md", strategies.executor_table, marker="executors"),
    Generated("docs/strategies.md", strategies.setting_table, marker="settings"),
    Generated("docs/run.schema.json", lambda: json.dumps(schema(), indent=1) + "\n"),
    Generated("clients/clientlab/experiments/atlas.toml", atlas.left_out, marker="left-out"),
    Generated("clients/clientlab/experiments/atlas.toml", atlas.arms, marker="arms"),
    Generated("docs/choosing-a-client.md", atlas_page.stored_answers, marker="atlas-answers"),
    Generated("docs/atlas.md", atlas_page.stored_map, marker="atlas-map"),
    Generated("docs/chooser.html", chooser.stored_page),
    Generated("docs/choosing-a-client.md", findings.choices_table, marker="findings"),
    Generated("docs/choosing-a-client.md", capabilities.capability_table, marker="capabilities"),
    Generated("docs/choosing-a-client.md", capabilities.trap_table, marker="traps"),
    Generated("docs/workloads.md", capabilities.sample_table, marker="samples"),
    Generated("docs/own-experiment.md", experiments.workload_table, marker="workload"),
    Generated("docs/faults.md", partial(faults.kind_table, "upstream"), marker="upstream-faults"),
    Generated("docs/faults.md", partial(faults.kind_table, "link"), marker="link-faults"),
    Generated("docs/retries.md", retries.policy_table, marker="retry-policies"),
    Generated("docs/retries.md", retries.default_table, marker="retry-defaults"),
    Generated("docs/figures.md", figures.figure_table, marker="figures"),
    Generated("docs/upstreams.md", findings.servers_table, marker="servers"),
    Generated("docs/metrics.md", metrics.worker_table, marker="worker-metrics"),
    Generated("docs/metrics.md", metrics.lab_table, marker="lab-metrics"),
    Generated("docs/metrics.md", metrics.upstream_table, marker="upstream-metrics"),
    Generated("dashboards/prometheus/rules.yml", rules.quantile_rules, marker="quantiles"),
    Generated("compose.yaml", compose.demo_services, marker="demo-clients"),
    Generated("compose.yaml", compose.other_services, marker="other-clients"),
    *(Generated(path, text) for path, text in dashboards.files().items()),
    *(Generated(path, text) for path, text in manifests.files(dashboards.names()).items()),
    *(Generated(path, text, marker=name) for (path, name), text in manifests.blocks(dashboards.names()).items()),
    Generated("docs/cli.md", cli.reference, marker="cli"),
    Generated("README.md", recipes.demo_table, marker="demo"),
    *(
        Generated("docs/recipes.md", partial(recipes.output, name), marker=f"output-{name}")
        for name in recipes.commands()
        if name != recipes.DEMO
    ),
)


def expected() -> dict[str, str]:
    """Path from the repository's root → the text that the file is to have. Raises BlockMissing."""
    texts: dict[str, str] = {}
    for entry in GENERATED:
        path = ROOT / entry.path
        before = texts.get(entry.path) or (path.read_text(encoding="utf-8") if path.exists() else "")
        texts[entry.path] = entry.applied(before)
    return texts


def stale() -> list[str]:
    """Paths of the files whose text is not the expected one."""
    return [name for name, text in expected().items() if not _has(ROOT / name, text)]


def write() -> list[str]:
    """Write the stale files and return their paths."""
    texts = expected()
    names = [name for name, text in texts.items() if not _has(ROOT / name, text)]
    for name in names:
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[name], encoding="utf-8")
    return names


def _has(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text
