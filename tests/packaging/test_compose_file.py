"""compose.yaml and .env, read as files: no container engine is needed."""

from __future__ import annotations

import re
import tomllib

import yaml

from clientlab.strategies import CLIENTS, EXECUTORS, STRATEGIES
from running import ROOT


def test_every_strategy_has_a_container_and_the_demos_are_up_by_default():
    """All from one anchor; those of the demo without a profile, and one that takes what no other does."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    clients = {name: service for name, service in services.items() if name.startswith("client-")}
    asked = {service["command"][2]: name for name, service in clients.items()}
    assert set(asked) == {"*"} | {
        name
        for name, found in STRATEGIES.items()
        if CLIENTS[found.client].extra == EXECUTORS[found.executor].extra == "all" and not CLIENTS[found.client].program
    }
    by_default = {name for name, service in clients.items() if "profiles" not in service}
    demo = tomllib.loads((ROOT / "clients/clientlab/experiments/demo.toml").read_text(encoding="utf-8"))
    strategies = {*demo["strategies"], *(arm["strategy"] for arm in demo["arms"].values()), "*"}
    assert by_default == {asked[name] for name in strategies}


def test_images_of_others_are_pinned_in_one_place():
    """In .env, by version; the Dockerfiles' own default is the same Python."""
    lines = (ROOT / ".env").read_text(encoding="utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    pinned = {name: value for name, value in settings.items() if name.endswith("_IMAGE")}
    assert all(re.search(r":v?\d+\.\d+", value) for value in pinned.values())
    for folder in ("servers", "clients"):
        text = (ROOT / folder / "Dockerfile").read_text(encoding="utf-8")
        assert re.findall(r"^FROM (\S+:\S+)", text, re.MULTILINE) == [pinned["PYTHON_IMAGE"]]
