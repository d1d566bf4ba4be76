"""The plan of an experiment: its tables expanded to arms, and its claims about them.

No strategy is loaded.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from clientlab.errors import FieldError, FieldKey
from clientlab.experiments.experiment import ArmTable, ClaimTable, Experiment
from clientlab.results.figures import of_claim
from clientlab.results.plan import FIRST_RATE, Arm, Claim, Plan, suffix_of
from clientlab.settings import UPSTREAMS, write_setting
from clientlab.statistics.decisions import FEWEST_SEQUENTIAL_ROUNDS
from clientlab.text import mask_text, suggest_nearest
from clientlab.validation import validate
from clientlab.workload.load import is_open, is_warm
from clientlab.workload.recordings import pin_recorded_requests
from clientlab.workload.values import make_link, write_link_part
from clientlab.workload.workload import Workload, change, draw_seed, value_of


def make_plan(
    experiment: Experiment,
    *,
    replaced: Mapping[str, str] = {},
    left_out: Mapping[str, str] = {},
    **circumstances: Any,
) -> Plan:
    """Return the plan of a run of the experiment.

    `replaced`, `left_out` and `circumstances` are fields of `Plan` that the experiment
    does not decide. Raise FieldError for a name that is missing or appears twice.
    """
    _check_names(experiment)
    if experiment.find_max is not None:
        experiment = _at_first_rate(experiment)
    by_name: dict[str, Arm] = {}
    workloads: dict[str, Workload] = {}
    for arm, workload in _expand(experiment, replaced, left_out):
        if arm.name in by_name:
            message = f"arm {arm.name!r} appears twice; repeat trials with `rounds`"
            raise FieldError(table_of(experiment, arm), message)
        by_name[arm.name] = arm
        try:
            pinned = pin_recorded_requests(workload)
        except FieldError as error:
            raise error.within("workloads", arm.group or arm.workload) from error
        connections = "warm" if is_warm(workload) else "cold"
        workloads[arm.workload] = change(pinned, connections=connections)
    arms = list(by_name.values())
    shared = Plan.model_fields.keys() & Experiment.model_fields.keys()
    fields = {name: getattr(experiment, name) for name in shared}
    if experiment.precision is not None:
        rounds = max(FEWEST_SEQUENTIAL_ROUNDS, experiment.rounds)
        fields |= {"rounds": rounds, "time_budget": experiment.budget, "budget": None}
    if experiment.seed is None:
        fields["seed"] = draw_seed()
    strategies = {arm.strategy for arm in arms}
    used = {name: other for name, other in replaced.items() if other in strategies}
    fields |= {
        "arms": arms,
        "workloads": workloads,
        "baseline": _find_arm(experiment.baseline, arms, ("baseline",)),
        "claims": planned_claims(experiment.claims, arms, workloads),
        "command": f"clientlab run {experiment.name}",
        "replaced": used,
        "left_out": left_out,
    }
    return validate(Plan.model_validate, fields | circumstances)


def _check_names(experiment: Experiment) -> None:
    """Raise FieldError for a name that is given twice, or that nothing has."""
    for field in ("upstreams", "routes"):
        names = getattr(experiment, field)
        for name in names:
            if names.count(name) > 1:
                message = (
                    f"{name!r} is given twice; name each once, and repeat trials with"
                    " `rounds`"
                )
                raise FieldError([field], message)
    for name, arm in experiment.arms.items():
        for field in ("workload", "environment", "server"):
            wanted = getattr(arm, field)
            tables = getattr(experiment, f"{field}s")
            if wanted is not None and wanted not in tables:
                known = ", ".join(tables) or "none"
                message = f"no {field} {wanted!r}; there are {known}"
                raise FieldError(["arms", name, field], message)
    for upstream in experiment.workers:
        if upstream not in UPSTREAMS:
            message = f"no such upstream; there are {', '.join(UPSTREAMS)}"
            raise FieldError(["workers", upstream], message)
    if experiment.instead and experiment.environments:
        message = (
            "it replaces what the lab's own Python lacks, but the arms run in"
            " environments; leave it out"
        )
        raise FieldError(["instead"], message)


def _at_first_rate(experiment: Experiment) -> Experiment:
    """Return the experiment with all workloads at the rate that a search tries first.

    Raise FieldError for a workload that has its own load, or no duration.
    """
    tables = {}
    for name, table in experiment.workloads.items():
        first = table.first
        for field in ("rate", "stages", "requests", "replay_times"):
            if value_of(first, field) not in {None, False} or field in table.axes:
                message = "the search for the highest rate chooses it; leave it out"
                raise FieldError(("workloads", name, field), message, also=["find_max"])
        duration = first.load.duration
        if duration is None:
            message = "a search needs the length of its trials; write one"
            raise FieldError(("workloads", name, "duration"), message)
        max_late = first.load.max_late or duration
        searched = change(first, rate=FIRST_RATE, max_late=max_late)
        tables[name] = table.model_copy(update={"first": searched})
    return experiment.changed(workloads=tables)


def _expand(
    experiment: Experiment, replaced: Mapping[str, str], left_out: Collection[str]
) -> Iterator[tuple[Arm, Workload]]:
    """Yield every arm with its workload.

    Arms are ordered by workload, upstream and route, then as in the file.
    """
    kept = [name for name in experiment.strategies if name not in left_out]
    names = [replaced.get(name, name) for name in kept]
    tables = [(name, ArmTable(strategy=name)) for name in names]
    for name, table in experiment.arms.items():
        strategy = replaced.get(table.strategy, table.strategy)
        tables.append((name, table.model_copy(update={"strategy": strategy})))
    shared: dict[str, list[str]] = {
        "workload": list(experiment.workloads),
        "upstream": experiment.upstreams,
        "route": list(experiment.routes),
    }
    listed = []
    # Also the upstreams and routes that only single arms choose.
    every = [dict.fromkeys(names) for names in shared.values()]
    for name, table in tables:
        choices = [_choose(getattr(table, part), shared[part]) for part in shared]
        listed.append((name, table, choices))
        for values, chosen in zip(every, choices, strict=True):
            values.update(dict.fromkeys(chosen))
    for way in itertools.product(*every):
        for name, table, choices in listed:
            places = list(zip(way, choices, strict=True))
            if all(value in chosen for value, chosen in places):
                varied = [value for value, chosen in places if len(chosen) > 1]
                full_name = f"{name} ({', '.join(varied)})" if varied else name
                yield from _expand_table(name, full_name, table, way, experiment)


def _expand_table(
    name: str,
    full_name: str,
    table: ArmTable,
    way: Sequence[str],
    experiment: Experiment,
) -> Iterator[tuple[Arm, Workload]]:
    """Yield an arm for each environment, server, and point on the axes.

    Workload, link and strategy have axes. `way`: workload, upstream and route.
    """
    group, upstream, route = way
    workload = experiment.workloads[group]
    environments = _choose(table.environment, experiment.environments)
    servers = _choose(table.server, experiment.servers)
    fields: dict[str, Any] = dict(workload.axes)
    if table.concurrency is not None:
        fields["concurrency"] = table.concurrency
    parts = (fields, workload.link_parts | table.link_parts, table.settings)
    points = list(itertools.product(*map(_combine, parts)))
    axes = set()
    for part in parts:
        axes |= {key for key, value in part.items() if isinstance(value, list)}
    for environment, server in itertools.product(environments, servers):
        place = f" in {environment}" if len(environments) > 1 else ""
        if len(servers) > 1:
            place += f" at {server}"
        for changes, link, settings in points:
            texts = {part: write_link_part(part, value) for part, value in link.items()}
            values = {**changes, **texts, **settings}
            point = {
                key: mask_text(value) if isinstance(value, str) else value
                for key, value in values.items()
                if key in axes
            }
            suffix = suffix_of(point) + place
            arm = Arm(
                name=full_name + suffix,
                label=name + suffix,
                strategy=_with_settings(table.strategy, settings),
                workload=group + suffix_of(changes),
                upstream=upstream,
                route=route,
                group=group,
                axes=point,
                sweep=full_name + place if point else None,
                control=table.control,
                environment=environment,
                server=server,
                link=make_link(link.get("rtt"), link.get("bandwidth")),
            )
            yield arm, workload.at(changes)


def _choose(own: str | None, names: Iterable[str]) -> list[Any]:
    """Return the name that a table chooses, else all of them, else none."""
    return [own] if own else list(names) or [None]


def _with_settings(strategy: str, settings: Mapping[str, Any]) -> str:
    if not settings:
        return strategy
    query = "&".join(f"{key}={write_setting(value)}" for key, value in settings.items())
    mark = "&" if "?" in strategy else "?"
    return f"{strategy}{mark}{query}"


def _combine(axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every combination of the values.

    A single value is an axis with one point.
    """
    values = (value if isinstance(value, list) else [value] for value in axes.values())
    return [dict(zip(axes, point, strict=True)) for point in itertools.product(*values)]


def table_of(
    experiment: Experiment, arm: Arm, field: str | int | None = None
) -> FieldKey:
    """Return the table of an arm in the file, or of a field of its workload."""
    label = arm.label or ""
    label = label.removesuffix(f" at {arm.server}")
    label = label.removesuffix(f" in {arm.environment}")
    name, _, _ = label.partition("[")  # in the file
    table = experiment.arms.get(name)
    if field == "concurrency" and table is not None and table.concurrency is not None:
        return ("arms", name)
    if field is not None:
        return ("workloads", arm.group or arm.workload)
    return ("strategies",) if table is None else ("arms", name)


def _find_arm(name: str | None, arms: Sequence[Arm], key: FieldKey) -> str | None:
    """Return the arm of that name. ``NAME[first]`` and ``NAME[last]`` are of a sweep.

    Raise FieldError at `key`.
    """
    names = [arm.name for arm in arms]
    if name is None or name in names:
        return name
    base, _, end = name.partition("[")
    sweep = [arm.name for arm in arms if arm.sweep == base]
    if sweep and end == "first]":
        return sweep[0]
    if sweep and end == "last]":
        return sweep[-1]
    raise FieldError(key, f"no arm is named {name!r}{suggest_nearest(name, names)}")


def _find_sweep(name: str | None, arms: Sequence[Arm], key: FieldKey) -> list[str]:
    """Return the arms of a sweep in order, or none without a name.

    Raise FieldError if no optimum can lie between two of them.
    """
    if name is None:
        return []
    sweep = [arm for arm in arms if arm.sweep == name]
    if len(sweep) < 3 or len(sweep[0].axes) > 1:
        others = {arm.sweep for arm in arms if arm.sweep} - {name}
        hint = suggest_nearest(name, others)
        message = f"{name!r} is not a sweep of at least 3 arms along one axis{hint}"
        raise FieldError(key, message)
    return [arm.name for arm in sweep]


def planned_claims(
    tables: Mapping[str, ClaimTable],
    arms: Sequence[Arm],
    workloads: Mapping[str, Workload],
) -> list[Claim]:
    """Return the claims of a plan.

    Raise FieldError for a claim that names a missing arm, or that no run can settle
    except by chance.
    """
    by_name = {arm.name: arm for arm in arms}
    claims = []
    for name, table in tables.items():
        key = ("claims", name)
        named = {
            letter: _find_arm(getattr(table, letter), arms, (*key, letter))
            for letter in "abcd"
        }
        sweep = _find_sweep(table.sweep, arms, (*key, "sweep"))
        first = by_name[named["a"] or sweep[0]]
        requests = workloads[first.workload].load.requests
        count = "as many" if requests is None else f"{requests:,}"
        text = table.text.replace("{requests}", count)
        fields = table.model_dump() | named
        fields |= {"name": name, "text": text, "arms": sweep}
        claim = Claim.model_validate(fields)
        pairs = {"b": (claim.a, claim.b), "d": (claim.c, claim.d)}
        for letter, (arm, other) in pairs.items():
            is_repeated = letter == "d" and pairs["d"] == pairs["b"]
            if other is not None and (arm == other or is_repeated):
                message = f"claim {name!r} compares the same arms; name another"
                raise FieldError([*key, letter], message)
        for group in [sweep] if sweep else pairs.values():
            compared = [by_name[name] for name in group if name is not None]
            problem = _find_problem(claim, compared, workloads)
            if problem:
                message = f"claim {name!r} compares {claim.figure}{problem}"
                raise FieldError([*key, "figure"], message)
        claims.append(claim)
    return claims


_NEEDED = {
    "cold": "cold = true in its workload",
    "elapsed": "elapsed = true in its workload",
    "first_byte": "first_byte = true in its workload",
    "delay": 'delay = "100ms" in its workload, or rtt',
    "call_timeout": 'call_timeout = "2s" in its workload',
    "faults": 'faults = "503:5%" in its workload',
    "stream": 'stream = "sse" in its workload',
}
"""What a figure needs → how to write it."""

_PER_REQUEST = {
    "wall": "seconds_per_request",
    "elapsed": "mean",
    "cpu_total": "cpu_seconds_per_request",
}
"""Figure of a whole trial → the figure of one request, in the same direction."""


def _find_problem(
    claim: Claim, arms: Sequence[Arm], workloads: Mapping[str, Workload]
) -> str | None:
    """Return why the figure of a claim cannot be compared between these arms.

    Return None if it can.
    """
    figure = of_claim(claim.figure)
    for arm in arms:
        workload = workloads[arm.workload]
        if figure.scheduled and is_open(workload):
            return (
                f", which the schedule of arm {arm.name!r} decides; compare p99 or"
                " achieved_rate"
            )
        if figure.total and workload.load.duration is not None:
            better = (
                f'write figure = "{_PER_REQUEST[figure.key]}", or give the arm a number'
                " of requests"
            )
            return f", and arm {arm.name!r} runs for a fixed duration; {better}"
        if figure.needs and not figure.is_known(workload, arm.link):
            return (
                f", which arm {arm.name!r} does not record; write"
                f" {_NEEDED[figure.needs]}"
            )
    counts = sorted({workloads[arm.workload].load.requests or 0 for arm in arms})
    if figure.total and len(counts) > 1:
        numbers = " and ".join(f"{count:,}" for count in counts)
        return (
            f" of {numbers} requests; compare a figure per request or per second, or"
            " give all arms the same number"
        )
    return None
