"""The process of a worker that waits."""

from __future__ import annotations

import subprocess
import sys


def test_an_idle_worker_does_not_load_what_only_a_trial_needs():
    """Sixty of them wait beside one trial: numpy alone would be 600 MB."""
    code = "import sys, clientlab.worker.agent; print({'numpy', 'pydantic', 'scipy', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
