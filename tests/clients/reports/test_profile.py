"""Profiles in reports: sentences, tables, flame graphs, and the verdict that they name a package for."""

from __future__ import annotations

import io
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from clientlab.errors import LabError
from clientlab.reports import as_html, as_markdown, as_terminal, profile_section
from clientlab.reports.charts import flame
from clientlab.results.profile import FlameNode, Profile, ProfiledFunction
from clients.documents import a_run, a_trial
from clients.every_field import profiles, whole_run


def text_of(run, *, whole=False) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(as_terminal.render(run, whole=whole))
    return console.file.getvalue()


def profiled_run():
    """Two arms with profiles, and one whose trial could not be profiled."""
    run = a_run(*(a_trial(name, number) for name in ("urllib3", "pycurl", "requests") for number in (1, 2, 3)))
    arms = {"urllib3 (direct)": "urllib3", "pycurl (direct)": "pycurl"}
    found = [one.model_copy(update={"arm": arms.get(one.arm, one.arm)}) for one in profiles()]
    return run.model_copy(update={"profiles": found})


def test_the_short_form_has_the_packages_that_took_most_and_who_has_no_profile():
    """The kernel's share and what the profiler could not see are beside them."""
    found = text_of(profiled_run())
    assert "urllib3: urllib3 60 %, kernel 30 %, clientlab 10 %" in found
    assert "requests: its trial failed: stopped" in found
    assert "urllib3: libcurl has no symbols" in found
    assert "Functions of" not in found
    assert "Functions of urllib3" in text_of(profiled_run(), whole=True)


def test_a_full_client_has_the_package_that_took_most_in_its_verdict():
    """An arm without a profile has the verdict alone."""
    lines = text_of(profiled_run()).splitlines()
    rows = {name: next(line for line in lines if line.strip().startswith(name)) for name in ("pycurl", "requests")}
    assert "client: urllib3" in rows["pycurl"]
    assert rows["requests"].rstrip().endswith("client")


def test_the_slowdown_is_the_rate_under_the_profiler_over_that_of_the_rounds():
    """1,000 requests in a second, and 900 under the profiler."""
    run = profiled_run()
    assert profile_section.slowdown_of(run, run.profiles[0]) == pytest.approx(0.9)


def test_two_arms_of_a_workload_are_compared_by_time_per_request():
    """0.5 ms of CPU time per request: the kernel takes 0.05 ms more."""
    run = profiled_run()
    ((before, after),) = profile_section.pairs(run)
    assert (before.arm, after.arm) == ("urllib3", "pycurl")
    found = as_markdown.render(run, ())
    assert "| kernel | 150 µs | 200 µs | +50.0 µs |" in found


def test_flame_graphs_are_files_of_xml_without_references(tmp_path):
    """One for each profile, then the difference of two arms. Names from a document can't become markup."""
    run = profiled_run()
    evil = ProfiledFunction(name="<script>alert(1)</script>", package="x", own=0.5, total=0.5)
    node = FlameNode(parent=-1, function=0, share=0.5)
    hostile = Profile(arm="requests", samples=9, packages={"x": 1.0}, functions=[evil], flame=[node])
    run = run.model_copy(update={"profiles": [*run.profiles[:2], hostile]})
    as_html.write_flames(run, tmp_path / "a.svg")
    written = (tmp_path / "a.svg").read_text(encoding="utf-8")
    root = ET.fromstring(written)  # noqa: S314 - the test's own file
    titles = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text") if one.get("class") == "title"]
    assert titles == ["urllib3", "pycurl", "requests", "pycurl against urllib3", "requests against urllib3"]
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert "href" not in written
    page = as_html.render(run)
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    with pytest.raises(LabError, match="has no profile; measure with --profile"):
        as_html.write_flames(whole_run().model_copy(update={"profiles": []}), tmp_path / "b.svg")


def test_the_cells_of_a_flame_graph_are_within_those_of_their_callers():
    """What all samples share is left out, but for the innermost of these frames."""
    graph = flame.flame(profiles()[0], 0.001)
    assert [(cell.name, cell.row, round(cell.left), round(cell.width)) for cell in graph.cells] == [
        ("main", 0, 0, 100), ("urlopen", 1, 0, 90), ("send", 2, 0, 30),
    ]  # fmt: skip
    assert graph.cells[2].title == "send (kernel): 30.0 %, 300 µs per request"
    other = flame.difference(profiles()[0], profiles()[1], (0.001, 0.002))
    assert {cell.name: cell.tone for cell in other.cells} == {"main": "more", "urlopen": "more", "send": "more"}


def test_a_deep_document_is_drawn_in_a_moment():
    """As many nodes as a document may have, each below the one before."""
    function = ProfiledFunction(name="f", package="p", own=1.0, total=1.0)
    nodes = [FlameNode(parent=place - 1, function=0, share=0.5) for place in range(5000)]
    deep = Profile(arm="urllib3", packages={"p": 1.0}, functions=[function], flame=nodes)
    assert flame.flame(deep, None).high < 4000


def test_a_profile_is_a_tree_and_has_packages_or_a_reason():
    """Anybody can write a run file."""
    with pytest.raises(ValueError, match="its parent does not come before it"):
        Profile(arm="a", packages={"p": 1.0}, flame=[FlameNode(parent=0, function=0, share=1.0)])
    with pytest.raises(ValueError, match="either packages, or the reason"):
        Profile(arm="a")
