"""Memory profiles in reports: sentences, tables, flame graphs, and no word of them in the verdict."""

from __future__ import annotations

import pytest

from clientlab.reports import as_html, as_markdown, memory_section
from clientlab.reports.charts import flame
from clientlab.results.profile import Profile
from clients.documents import a_run, a_trial
from clients.every_field import memory_profiles


@pytest.fixture
def run():
    """Two arms with memory profiles, and one whose trial could not be recorded."""
    found = a_run(*(a_trial(name, number) for name in ("urllib3", "pycurl", "requests") for number in (1, 2, 3)))
    profiles = [one.model_copy(update={"arm": one.arm.removesuffix(" (direct)")}) for one in memory_profiles()]
    return found.model_copy(update={"profiles": profiles})


def test_the_section_opens_with_the_peak_and_the_allocations_of_a_request(run):
    """400 requests with 80,000 allocations. Their trial had a quarter of the rate of the rounds."""
    found = as_markdown.render(run, ())
    assert (
        "urllib3: peak 3.00 MiB above its start, 60 % of it urllib3; 200 allocations and 1.00 KiB a request, "
        "most by http" in found
    )
    assert "requests: its trial failed: stopped" in found
    assert "urllib3: its trial had 2,000 of 20,000 requests" in found
    assert "| urllib3 | 3.00 MiB | 100 % | 200 | 1.00 KiB | 4.0 × |" in found


def test_the_tables_have_packages_functions_and_the_difference_of_two_arms(run):
    """60 % of 3 MiB, and of 2 MiB."""
    found = as_markdown.render(run, ())
    assert "| urllib3 | 1.80 MiB | 60.0 % | 50.0 | 768 B |" in found
    assert "| urlopen | urllib3 | 50.0 | 768 B |" in found
    assert "| urllib3 | 1.80 MiB | 1.20 MiB | −614 KiB |" in found


def test_a_memory_profile_is_in_no_verdict(run):
    """The package beside a full client is the one that took most CPU time."""
    assert "client: " not in as_markdown.render(run, ())


def test_the_graphs_show_bytes(run, tmp_path):
    """One for each arm, then the difference of two."""
    first, _, difference = memory_section.graphs(run)
    assert first.cells[1].title == "urlopen (urllib3): 90.0 %, 2.70 MiB"
    assert difference.title == "pycurl against urllib3 (memory at the peak)"
    assert difference.cells[1].title == "urlopen (urllib3): 2.70 MiB → 1.80 MiB"
    assert {cell.tone for cell in difference.cells} == {"less"}
    assert ("less", flame.MEMORY.less) in difference.legend
    as_html.write_flames(run, tmp_path / "a.svg")
    assert "urllib3 (memory at the peak)" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_a_profile_of_memory_has_what_was_allocated():
    """Anybody can write a run file."""
    with pytest.raises(ValueError, match="a memory profile has what was allocated, and no other one has"):
        Profile(arm="a", kind="memory", packages={"p": 1.0})
    with pytest.raises(ValueError, match="a memory profile has what was allocated, and no other one has"):
        memory_profiles()[0].model_copy(update={"kind": "cpu"})
