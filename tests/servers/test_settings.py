"""Settings from the environment."""

from __future__ import annotations

import pytest

from mockupstream.settings import BadVariableError, or_exit, read_serving, read_settings


def test_defaults_hold_where_nothing_is_said() -> None:
    settings = read_settings({"MOCKUPSTREAM_DELAY": "", "MOCKUPSTREAM_MAX_BODY": ""})
    assert settings.delay.stated == 0
    assert settings.most_delay.value == 60
    assert read_serving({}).keep_alive == 75


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DELAY", "soon"), ("DELAY", "90s"), ("MAX_DELAY", "uniform:1s,2s"),
        ("MAX_BODY", "1MB"),
    ],
)  # fmt: skip
def test_a_bad_variable_is_named(variable: str, value: str) -> None:
    with pytest.raises(BadVariableError, match=f"^MOCKUPSTREAM_{variable}: [^\n]+$"):
        read_settings({f"MOCKUPSTREAM_{variable}": value})


def test_a_bad_variable_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        or_exit(read_settings, {"MOCKUPSTREAM_DELAY": "soon"})
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("MOCKUPSTREAM_DELAY: 'soon' ")
    assert said.count("\n") == 1
