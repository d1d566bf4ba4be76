"""Bad input of `clientlab kube`: one line that says what, where and what to do, and exit code 2."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.real


def said(*words: str, **environment: str) -> tuple[int, str]:
    """Exit code and the one line of a command, whose output is empty."""
    command = [sys.executable, "-m", "clientlab", "kube", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )
    assert (done.stdout, done.stderr.count("\n")) == ("", 1), done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", [("run", "demo"), ("fetch", "20240506-070809-demo-abcd"), ("status",)])
def test_without_kubectl_it_is_said_where_to_get_it(words):
    """Without kubectl, every subcommand of `kube` says where to get it."""
    code, line = said(*words, PATH="/nonexistent")
    assert (code, "kubectl is not installed; install it" in line) == (2, True)


def test_without_a_cluster_it_is_said_how_one_is_named(tmp_path):
    """Without a cluster, the message says how to name one and quotes kubectl."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    code, line = said("run", "demo", KUBECONFIG=str(tmp_path / "none"))
    assert code == 2
    assert "refused" in line
    assert "KUBECONFIG" in line


def test_a_namespace_without_the_lab_is_named(cluster, tmp_path):
    """With the command that applies the manifests."""
    code, line = said("run", "demo", "--namespace", "kube-public", "--out", str(tmp_path))
    assert code == 2
    assert "namespace 'kube-public' has no lab" in line
    assert "kubectl apply -k deploy/kubernetes/demo" in line
    assert cluster.namespace not in line


def test_an_experiment_that_the_lab_does_not_know_is_named_with_those_it_knows(lab):
    """An unknown experiment is refused with a list of the known ones, and no run begins."""
    code, line = said("run", "nonsense", "--namespace", lab.namespace)
    assert code == 2
    assert "experiment 'nonsense' is unknown; there are " in line
    with lab.lab() as api:
        assert not api.document("/api/state")["measuring"]


def test_a_run_that_the_lab_does_not_have_is_named(lab, tmp_path):
    """A run that the lab does not have is named, and nothing is stored."""
    code, line = said("fetch", "20240506-070809-demo-abcd", "--namespace", lab.namespace, "--out", str(tmp_path / "x"))
    assert code == 2
    assert "there is no run '20240506-070809-demo-abcd'" in line
    assert not (tmp_path / "x").exists()


def test_a_second_run_is_refused_while_one_is_in_progress(lab):
    """With the name of the other one, which goes on."""
    started = lab.run()
    name = started.name
    code, line = said("run", "demo", "--namespace", lab.namespace)
    assert code == 2
    assert f"run {name} is in progress" in line
    assert started.end()[0] == 0
