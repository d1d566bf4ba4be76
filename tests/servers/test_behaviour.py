"""Settings from the environment, behaviours from queries, and positions of planets."""

from __future__ import annotations

import json

import pytest

from mockupstream.behaviour import BehaviourReader
from mockupstream.payloads import planet_position
from mockupstream.refusals import RefusedError
from mockupstream.settings import BadVariableError, or_exit, read_settings

NOON = {"when": "2018-11-01T12:00:00"}


def reader(**variables: str) -> BehaviourReader:
    """Return a reader for these MOCKUPSTREAM_ variables."""
    return BehaviourReader(
        read_settings(
            {f"MOCKUPSTREAM_{name}": value for name, value in variables.items()}
        )
    )


def test_empty_variables_have_their_defaults() -> None:
    settings = read_settings({"MOCKUPSTREAM_DELAY": "", "MOCKUPSTREAM_MAX_BODY": ""})
    assert (settings.delay.stated, settings.most_delay.value) == (0, 60)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DELAY", "soon"),
        ("DELAY", "90s"),
        ("MAX_DELAY", "uniform:1s,2s"),
        ("MAX_BODY", "1MB"),
    ],
)
def test_an_invalid_variable_ends_the_server_with_one_line(
    variable: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    variables = {f"MOCKUPSTREAM_{variable}": value}
    with pytest.raises(BadVariableError, match=f"^MOCKUPSTREAM_{variable}: [^\n]+$"):
        read_settings(variables)
    with pytest.raises(SystemExit, match="2"):
        or_exit(read_settings, variables)
    assert capsys.readouterr().err.count("\n") == 1


def test_the_query_overrides_the_default() -> None:
    behaviour = reader(DELAY="120ms").read(
        "delay=5ms&status=404&delay=7ms&lon=1%2E5&empty="
    )
    assert behaviour.wait == (0.005, "delay;dur=5.0")
    assert behaviour.status == 404
    assert behaviour.parameters == {
        "delay": "5ms",
        "status": "404",
        "lon": "1.5",
        "empty": "",
    }


def test_a_draw_beyond_the_limit_is_refused() -> None:
    ours = reader(MAX_DELAY="1s")
    behaviour = ours.read("delay=normal:1s,100s")

    def draw_often() -> None:
        for _ in range(100):
            ours.wait(behaviour)

    with pytest.raises(RefusedError, match="normal:1s,100s"):
        draw_often()


@pytest.mark.parametrize(
    "query", ["delay=", "delay=soon", "delay=61", "status=99", "status=1e2", "seed=-1"]
)
def test_an_invalid_query_is_refused(query: str) -> None:
    ours = reader()
    with pytest.raises(RefusedError) as refused:
        ours.wait(ours.read(query))
    assert refused.value.status == 400


def test_the_position_of_mars_is_the_one_seen_from_greenwich() -> None:
    """It was in Capricornus, at about 21h 38m."""
    mars = json.loads(planet_position("Mars", NOON))
    assert mars["observer"] == {"lon": -0.0005, "lat": 51.4769, "elevation": 0.0}
    assert mars["right_ascension"].startswith("21:38:")
    assert mars["declination"].startswith("-16:")
    assert mars["magnitude"] == pytest.approx(-0.6, abs=0.1)


@pytest.mark.parametrize(
    ("planet", "parameters", "status"),
    [
        ("vulcan", {}, 404),
        *(
            ("mars", {name: text}, 400)
            for name, text in (
                ("lon", "nan"),
                ("lat", "91"),
                ("elevation", "inf"),
                ("when", "now"),
                ("when", "9999-12-31T23:59:59-12:00"),
            )
        ),
    ],
)
def test_an_unknown_planet_or_an_invalid_parameter_is_refused(
    planet: str, parameters: dict[str, str], status: int
) -> None:
    with pytest.raises(RefusedError, match=next(iter(parameters), planet)) as refused:
        planet_position(planet, parameters)
    assert refused.value.status == status
