"""Which extension module switched the GIL on, read from CPython's warning."""

from __future__ import annotations

import warnings

import pytest

from clientlab.measuring import gil_switch, usage

WARNING = (
    "The global interpreter lock (GIL) has been enabled to load module '{}', which has not declared that it can run "
    "safely without the GIL. To override this behavior and keep the GIL disabled (at your own risk), run with "
    "PYTHON_GIL=0 or -Xgil=0."
)
"""In the words of Python/import.c, as of CPython 3.14.7."""


@pytest.fixture
def shown(monkeypatch):
    """What a process without a GIL shows of its warnings. The filters of the tests are not changed."""
    texts: list[str] = []
    monkeypatch.setattr(gil_switch, "_modules", [])
    monkeypatch.setattr(usage, "has_gil", lambda: False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monkeypatch.setattr(warnings, "showwarning", lambda message, *_, **__: texts.append(str(message)))
        yield texts


def test_the_module_is_read_from_the_warning_whatever_the_filters_are(shown):
    """The warning is still shown, in the trial's log; that of a later module would not change the first."""
    gil_switch.watch()
    assert gil_switch.switched_by() is None
    for name in ("aiohttp._http_parser", "later"):
        warnings.warn(WARNING.format(name), RuntimeWarning, stacklevel=1)
    assert gil_switch.switched_by() == "aiohttp._http_parser"
    assert shown == [WARNING.format("aiohttp._http_parser"), WARNING.format("later")]


def test_other_warnings_are_filtered_as_before(shown):
    """A filter that hides them hides them still."""
    gil_switch.watch()
    warnings.warn("The global interpreter lock is fine", RuntimeWarning, stacklevel=1)
    assert (gil_switch.switched_by(), shown) == (None, [])


def test_a_process_with_a_gil_is_left_as_it_is(shown, monkeypatch):
    """Nothing can switch on what is on."""
    monkeypatch.setattr(usage, "has_gil", lambda: True)
    before = warnings.showwarning, list(warnings.filters)
    gil_switch.watch()
    assert (warnings.showwarning, list(warnings.filters)) == before
    assert shown == []


def test_no_more_than_a_limit_of_a_modules_name_is_kept(shown):
    """A worker's report has bounds."""
    gil_switch.watch()
    warnings.warn(WARNING.format("m" * 300), RuntimeWarning, stacklevel=1)
    assert gil_switch.switched_by() == "m" * gil_switch.LONGEST
    assert len(shown) == 1
