"""The table of servers: pairs of frameworks under one server, by who kept connections, beside the article's figures."""

from __future__ import annotations

import pytest

from clientlab.reports import as_markdown, servers
from clientlab.results.plan import Claim
from clients.documents import a_run, a_trial, an_open_trial
from clients.reports.test_table import shown


def trial(upstream: str, rate: float, kept: int | None, strategy: str = "ab", number: int = 1, **changes):
    """A trial of 1,000 requests at that rate; without `kept` the connections tell."""
    return a_trial(
        strategy, number, 1000 / rate, arm=f"{strategy} ({upstream})", upstream=upstream, kept_alive=kept, **changes
    )


ARTICLE = [
    trial("aiohttp?server=development", 2023, 1000),
    trial("flask?server=development", 722, 0),
    trial("aiohttp?workers=1", 2396, 1000),
    trial("flask?workers=1&worker_class=sync", 1041, 0),
    trial("aiohttp?workers=4", 2542, 1000),
    trial("flask?workers=4&worker_class=sync", 1729, 0),
]


CLAIMS = [
    Claim(name=f"claim-{number}", text="aiohttp is ahead", kind="less", a=f"ab ({mine})", b=f"ab ({other})",
          published=published)
    for number, (mine, other, published) in enumerate((
        ("aiohttp?server=development", "flask?server=development", "2,023 and 722 requests a second: 2.80 times"),
        ("aiohttp?workers=1", "flask?workers=1&worker_class=sync", "2,396 and 1,041 requests a second: 2.30 times"),
        ("aiohttp?workers=4", "flask?workers=4&worker_class=sync", "2,542 and 1,729 requests a second: 1.47 times"),
        ("aiohttp?workers=1", "flask?workers=1", None),
    ))
]  # fmt: skip


def run_of(*trials, claims=()):
    """A run whose arms are named as their trials say."""
    run = a_run(*trials, claims=list(claims))
    arms = [arm.model_copy(update={"name": f"{arm.strategy} ({arm.upstream})"}) for arm in run.experiment.arms]
    return run.model_copy(update={"experiment": run.experiment.model_copy(update={"arms": arms})})


def test_the_articles_figures_make_the_articles_table():
    """Its rows, its percentages, and what the experiment's claims quote of it beside those measured."""
    rows = servers.rows(run_of(*ARTICLE, claims=CLAIMS))
    assert [(row[0], row[1], row[4]) for row in rows] == [
        ("development server", "aiohttp alone", "+180 %"),
        ("gunicorn, 1 worker", "aiohttp alone", "+130 %"),
        ("gunicorn, 4 workers", "aiohttp alone", "+47 %"),
    ]
    for row, claim in zip(rows, CLAIMS, strict=False):
        assert row[7] == claim.published
        assert row[7].startswith(f"{row[2]} and {row[3]} requests a second: ")
        assert row[5:7] == ("1,000 of 1,000", "0 of 1,000")


def test_without_claims_of_a_pair_nothing_was_published():
    """Another experiment with the same servers has no figures of the article."""
    assert {row[7] for row in servers.rows(run_of(*ARTICLE))} == {"–"}


def test_who_keeps_connections_alike_has_rows_of_its_own():
    """Neither does, or both do: no article's figure stands there. Where Flask alone did there is no row."""
    controls = [
        trial("aiohttp?workers=1", 1500, 0, "ab?keepalive=false"),
        trial("flask?workers=1&worker_class=sync", 1000, 0, "ab?keepalive=false"),
        trial("flask?workers=1", 1200, 1000),
    ]
    rows = [row for row in servers.rows(run_of(*ARTICLE, *controls, claims=CLAIMS)) if row[0] == "gunicorn, 1 worker"]
    assert [row[1:5] for row in rows] == [
        ("aiohttp alone", "2,396", "1,041", "+130 %"),
        ("neither", "1,500", "1,000", "+50 %"),
        ("both", "2,396", "1,200", "+100 %"),
    ]
    assert [row[7] for row in rows] == ["2,396 and 1,041 requests a second: 2.30 times", "–", "–"]


def test_medians_of_rounds_stand_there_and_connections_tell_where_no_driver_does():
    """As of any other strategy: each request but the first of a connection found it kept."""
    trials = [trial("aiohttp?workers=2", rate, None, "pycurl@multi", n + 1, connections_opened=20)
              for n, rate in enumerate((100, 300, 200))]  # fmt: skip
    other = trial("flask?workers=2&worker_class=sync", 100, None, "pycurl@multi", connections_opened=1000)
    (row,) = servers.rows(run_of(*trials, other))
    assert row[:7] == (
        "gunicorn, 2 workers", "aiohttp alone", "200", "100", "+100 %", "980 of 1,000", "0 of 1,000"
    )  # fmt: skip


@pytest.mark.parametrize(
    "trials",
    [
        [a_trial("urllib3"), a_trial("urllib3", upstream="flask")],
        [trial("aiohttp?workers=1", 100, 0)],
        [trial("aiohttp?workers=1", 100, 0), trial("flask?workers=2", 100, 0)],
        [trial("aiohttp?workers=1", 100, 0), trial("flask?workers=1", 100, 0, route="proxy")],
        [a_trial("urllib3", upstream="127.0.0.1:8000")],
        [
            an_open_trial("ab", arm=f"ab ({name})", upstream=name, kept_alive=0)
            for name in ("aiohttp?workers=1", "flask?workers=1")
        ],
    ],
)
def test_other_runs_have_no_such_table(trials):
    """Plain upstreams, one framework alone, other servers, other ways, servers of one's own, both at one rate."""
    run = run_of(*trials)
    assert servers.rows(run) == []
    assert servers.TITLE not in shown(run)


def test_it_stands_in_the_terminal_and_in_markdown():
    """Terminal and Markdown show the table of servers with all its columns."""
    run = run_of(*ARTICLE, claims=CLAIMS)
    text = shown(run, 200)
    assert servers.TITLE in text
    assert "gunicorn, 4 workers  aiohttp alone" in text
    rates = "2,542 | 1,729 | +47 %"
    kept = "1,000 of 1,000 | 0 of 1,000"
    assert f"| gunicorn, 4 workers | aiohttp alone | {rates} | {kept} | {CLAIMS[2].published} |" in as_markdown.render(
        run
    )


def test_an_unknown_rate_is_a_dash_and_unknown_connections_make_no_row():
    """0 requests per second, or 0 connections, would be a measurement."""
    mine = trial("aiohttp?workers=1", 100, 1000, requests_per_second=None)
    other = trial("flask?workers=1&worker_class=sync", 100, 0)
    (row,) = servers.rows(run_of(mine, other))
    assert row[2:5] == ("–", "100", "–")
    unknown = trial("aiohttp?workers=1", 100, None, connections_opened=None)
    assert servers.rows(run_of(unknown, other)) == []
