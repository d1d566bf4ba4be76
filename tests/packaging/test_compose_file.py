"""compose.yaml and .env, read as files: no container engine is needed."""

from __future__ import annotations

import re
import tomllib

import yaml

from running import ROOT


def test_each_strategy_of_the_demo_has_a_container_and_one_takes_all_others():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    clients = [service for name, service in services.items() if name.startswith("client")]
    demo = tomllib.loads((ROOT / "clients/clientlab/experiments/demo.toml").read_text(encoding="utf-8"))
    strategies = {*demo["strategies"], *(arm["strategy"] for arm in demo["arms"].values())}
    offered = [service["command"][1].removesuffix("=1") for service in clients if "command" in service]
    assert (set(offered), len(clients)) == (strategies, len(offered) + 1)
    assert not any("profiles" in service for service in clients)


def test_images_of_others_are_pinned_in_one_place():
    lines = (ROOT / ".env").read_text(encoding="utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    pinned = {name: value for name, value in settings.items() if name.endswith("_IMAGE")}
    assert all(re.search(r":v?\d+\.\d+", value) for value in pinned.values())
    for folder in ("servers", "clients"):
        text = (ROOT / folder / "Dockerfile").read_text(encoding="utf-8")
        assert re.findall(r"^FROM (\S+:\S+)", text, re.MULTILINE) == [pinned["PYTHON_IMAGE"]]
    images = {}
    for folder in ("base", "monitoring"):
        text = (ROOT / "deploy" / "kubernetes" / folder / "kustomization.yaml").read_text(encoding="utf-8")
        images |= {image["name"]: image["newTag"] for image in yaml.safe_load(text)["images"]}
    assert {f"{name}:{tag}" for name, tag in images.items()} == set(pinned.values()) - {pinned["PYTHON_IMAGE"]}
