"""
What recording costs, beside the least that Python can do and beside others.

    python benchmarks/run.py [--rounds N] [--json FILE] [--pyperf FILE]
                             [--chart FILE]

Prints one table. Every figure is the median of the ratios of paired rounds. A
contender whose lines are wrong has no figure; one that writes less than the
others is marked, and says what is missing.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

# Before orjson: see docs/performance.md.
from elastic_events.formats import FORMATS


# isort: split
import measure
import workloads
from contenders import (
    OTHERS,
    Contender,
    Run,
    agent_straight_line,
    floor,
    floor_formatted,
    ours,
    ours_bound,
    ours_formatted,
    ours_mixed,
    ours_null,
    plain_json_logger,
    plain_ours,
    plain_text,
    rendezvous,
    straight_line,
    torch_rendezvous,
)
from measure import Job


class Figure(NamedTuple):
    """
    A line of the table.
    """

    group: str
    name: str
    value: float | None
    unit: str
    note: str = ""
    nanoseconds: tuple[float, ...] = ()


class Files:
    """
    A fresh file for each contender.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._count = 0

    def new(self) -> Path:
        """
        Return the path of a file that is not there yet.
        """
        self._count += 1
        return self._folder / f"{self._count}.jsonl"


def small_event(files: Files, rounds: int) -> Iterator[Figure]:
    """
    Yield what a worker's event costs, with this package and with others.
    """
    group = "a worker's event / the straight line"
    own = (
        Contender("the floor: dumps of the finished dict, and write", floor),
        Contender("the straight line", straight_line),
        Contender("record, file", ours),
        Contender("record, file, four keys bound", ours_bound),
        Contender("record, null", ours_null),
    )
    there = [each for each in (*own, *OTHERS) if each.is_there()]
    paths = {each.name: files.new() for each in there}
    jobs = {
        each.name: Job(each.prepare(paths[each.name]), workloads.small())
        for each in there
    }
    times = measure.in_turn(jobs, rounds)
    base = times["the straight line"]
    for each in there:
        took = times[each.name]
        yield _checked(
            Figure(
                group,
                each.name,
                measure.ratio(took, base),
                "x",
                nanoseconds=tuple(took),
            ),
            paths[each.name],
            jobs[each.name].events,
        )
    for each in OTHERS:
        if not each.is_there():
            yield Figure(group, each.name, None, "x", "not installed")


def _checked(figure: Figure, file: Path, events: workloads.Events) -> Figure:
    if figure.name.endswith("null"):
        return figure._replace(note="writes nothing")
    missing = measure.missing_in(file, events)
    if missing is None:
        return figure._replace(value=None, note="its lines are no JSON")
    note = f"writes less: no {', '.join(missing)}" if missing else ""
    return figure._replace(note=note)


def other_events(files: Files, rounds: int) -> Iterator[Figure]:
    """
    Yield what other events cost.
    """
    group = "record, file / the floor of the same event"
    for name, prepare, make in (
        ("a worker's event", ours, workloads.small),
        ("an agent's event, unwrapped", ours, workloads.agent),
        ("the same, in a straight line", agent_straight_line, workloads.agent),
        ("a failed worker's event, with traceback", ours, workloads.failed),
        ("a hundred keys", ours, workloads.wide),
    ):
        events = make()
        yield Figure(
            group,
            name,
            _paired(
                Job(prepare(files.new()), events),
                Job(floor(files.new()), events),
                rounds,
            ),
            "x",
        )
    yield Figure(
        "record, file / record, file",
        "a value that JSON does not have / none",
        _paired(
            Job(ours(files.new()), workloads.hostile()),
            Job(ours(files.new()), workloads.small()),
            rounds,
        ),
        "x",
    )


def formatted_events(files: Files, rounds: int) -> Iterator[Figure]:
    """
    Yield what a format costs beside our own line.
    """
    for kind, make in (
        ("a worker's event", workloads.small),
        ("an agent's event", workloads.agent),
    ):
        events = make()
        yield from _formats(
            f"record, file, in a format / record, file: {kind}",
            {
                **{each: (each, ours_formatted(each)) for each in FORMATS},
                "otel, the floor: dumps of the finished form, and write": (
                    "otel",
                    floor_formatted("otel"),
                ),
            },
            events,
            files,
            rounds,
        )


def _formats(
    group: str,
    contenders: Mapping[str, tuple[str, Callable[[Path], Run]]],
    events: workloads.Events,
    files: Files,
    rounds: int,
) -> Iterator[Figure]:
    """
    Yield the figure of each of *contenders*: a format, and what prepares it.
    """
    paths = {name: files.new() for name in contenders}
    jobs = {
        name: Job(prepare(paths[name]), events)
        for name, (_, prepare) in contenders.items()
    }
    native = Job(ours(files.new()), events)
    times = measure.in_turn({"": native, **jobs}, rounds)
    for name, (form, _) in contenders.items():
        if measure.are_forms_of(paths[name], FORMATS[form], events):
            value = measure.ratio(times[name], times[""])
            yield Figure(group, name, value, "x")
        else:
            yield Figure(group, name, None, "x", "its lines are wrong")


def formatted_mix(files: Files, rounds: int) -> Iterator[Figure]:
    """
    Yield what a format costs where no two lines that are alike follow.
    """
    group = "record, file, in a format / record, file: what a job records"
    lines = workloads.mixed()
    forms = ("ecs", "otel")
    paths = {name: files.new() for name in ("", *forms)}
    jobs = {
        name: Job(ours_mixed(f"?format={name}" if name else "")(path), lines)
        for name, path in paths.items()
    }
    times = measure.in_turn(jobs, rounds)
    for name in forms:
        if measure.are_forms_of_lines(
            paths[name], FORMATS[name], paths[""], len(lines)
        ):
            value = measure.ratio(times[name], times[""])
            yield Figure(group, name, value, "x")
        else:
            yield Figure(group, name, None, "x", "its lines are wrong")


def plain_logging(files: Files, rounds: int) -> Iterator[Figure]:
    """
    Yield what a plain `logger.info` costs.
    """
    group = "logger.info through our handler / …"
    events = workloads.small()
    for name, prepare in (
        ("logging.FileHandler, plain text", plain_text),
        ("python-json-logger[orjson], same fields", plain_json_logger),
    ):
        try:
            base = prepare(files.new())
        except ImportError:
            yield Figure(group, name, None, "x", "not installed")
            continue
        mine = plain_ours(files.new())
        value = _paired(Job(mine, events), Job(base, events), rounds)
        yield Figure(group, name, value, "x")


def rendezvous_events(files: Files, rounds: int) -> Iterator[Figure]:
    """
    Yield what the steps of a rendezvous cost.
    """
    group = "construct_and_record_rdzv_event"
    events = workloads.small()
    on, off = (
        Job(rendezvous(files.new()), events),
        Job(rendezvous(None), events),
    )
    base = Job(straight_line(files.new()), events)
    record = Job(ours(files.new()), events)
    yield Figure(group, "on / record, file", _paired(on, record, rounds), "x")
    off_ratio = _paired(off, base, rounds)
    yield Figure(group, "off / the straight line", off_ratio, "x")
    if Contender("", torch_rendezvous, "torch").is_there():
        torchs = Job(torch_rendezvous(files.new()), events)
        ratios = []
        for _ in range(5):
            # It records five events only.
            begin = measure.nanoseconds(torchs) * len(events) / 5
            ratios.append(begin / measure.nanoseconds(on))
        value = statistics.median(ratios)
        yield Figure(group, "torch's, on / ours, on", value, "x")


def together(files: Files, rounds: int) -> Iterator[Figure]:
    """
    Yield what several threads and processes cost each other.
    """
    events = workloads.small() * 4
    for threads in (1, 4, 16):
        mine, base = (
            Job(ours(files.new()), events),
            Job(floor(files.new()), events),
        )
        ratios = [
            measure.with_threads(mine, threads)
            / measure.with_threads(base, threads)
            for _ in range(max(5, rounds // 5))
        ]
        yield Figure(
            "record, file / the floor",
            f"{threads} threads",
            statistics.median(ratios),
            "x",
        )
    gains = [
        measure.gain_of_two_processes(ours, files.new(), events)
        / measure.gain_of_two_processes(floor, files.new(), events)
        for _ in range(7)
    ]
    yield Figure(
        "two processes on one file / one",
        "gain of record / gain of the floor",
        statistics.median(gains),
        "x",
    )


def single_calls(files: Files, calls: int) -> Iterator[Figure]:
    """
    Yield how much single calls differ.
    """
    jobs = {
        "record, file": Job(ours(files.new()), workloads.small()),
        "the straight line": Job(
            straight_line(files.new()), workloads.small()
        ),
    }
    seen: dict[str, list[measure.Latency]] = {name: [] for name in jobs}
    for _ in range(5):
        for name, job in jobs.items():
            seen[name].append(measure.latency(job, calls))
    spread = {
        name: statistics.median(each.p99 - each.p50 for each in latencies)
        for name, latencies in seen.items()
    }
    yield Figure(
        "p99 - p50",
        "record, file / the straight line",
        spread["record, file"] / spread["the straight line"],
        "x",
    )
    for name, latencies in seen.items():
        for field in measure.Latency._fields:
            value = statistics.median(getattr(e, field) for e in latencies)
            yield Figure(f"latency, {name}", field, value / 1000, "µs")


def resources(files: Files, events: int) -> Iterator[Figure]:
    """
    Yield memory and the time of the import.
    """
    job = Job(ours(files.new()), workloads.small())
    grown = measure.resident_growth(job, events) / 1024
    yield Figure("memory", f"growth over {events:,} events", grown, "KiB")
    yield Figure(
        "import elastic_events",
        "/ import structlog, orjson",
        measure.import_ratio(
            "import elastic_events", "import structlog, orjson", 15
        ),
        "x",
    )


def _paired(mine: Job, base: Job, rounds: int) -> float:
    times = measure.in_turn({"mine": mine, "base": base}, rounds)
    return measure.ratio(times["mine"], times["base"])


def machine() -> dict[str, str]:
    """
    Return where the figures come from.
    """
    from importlib.metadata import PackageNotFoundError, version

    def known(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(": ")[2]
            break
    names = (
        "elastic-events structlog orjson torch python-json-logger loguru"
        " eliot opentelemetry-sdk"
    )
    return {
        "cpu": cpu,
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: known(name) for name in names.split()},
    }


def print_table(figures: list[Figure]) -> None:
    """
    Print the figures, a title for each group.
    """
    group = ""
    for figure in figures:
        if figure.group != group:
            group = figure.group
            print(f"\n{group}")
        value = "-" if figure.value is None else f"{figure.value:.3f}"
        print(f"  {value:>10} {figure.unit:<4}{figure.name}", end="")
        print(f"  ({figure.note})" if figure.note else "")


def write_pyperf(figures: list[Figure], file: Path) -> None:
    """
    Write the times of an event, for pyperf's commands to look at.
    """
    import pyperf

    suite = pyperf.BenchmarkSuite(
        [
            pyperf.Benchmark(
                [
                    pyperf.Run(
                        [each / 1e9 for each in figure.nanoseconds],
                        metadata={"name": figure.name, "unit": "second"},
                    )
                ]
            )
            for figure in figures
            if figure.nanoseconds
        ]
    )
    suite.dump(str(file), replace=True)


def draw_chart(
    figures: list[Figure], file: Path, where: dict[str, str]
) -> None:
    """
    Draw the first group as bars.
    """
    from matplotlib import pyplot as plt

    bars = [
        figure
        for figure in figures
        if figure.group == figures[0].group and figure.value is not None
    ]
    bars.sort(key=lambda figure: -(figure.value or 0))
    height = 0.4 * len(bars) + 1.2
    drawing, axes = plt.subplots(figsize=(9, height), layout="constrained")
    names = [figure.name + (" *" if figure.note else "") for figure in bars]
    colours = [
        "#c2410c" if figure.name.startswith("record") else "#94a3b8"
        for figure in bars
    ]
    drawn = axes.barh(
        names, [figure.value or 0 for figure in bars], color=colours
    )
    axes.bar_label(drawn, fmt="%.2f", padding=4)
    axes.set_xscale("log")
    axes.set_xlabel(f"{figures[0].group}, less is better; * writes less")
    about = "{cpu}, Linux {kernel}, Python {python}".format_map(where)
    axes.set_title(about, fontsize=8, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.15)
    drawing.savefig(file)


def main() -> int:
    """
    Measure, and print, write and draw what was asked for.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument(
        "--pyperf", type=Path, help="write the times of an event there"
    )
    parser.add_argument("--chart", type=Path, help="draw the bars there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = Files(folder)
        figures = [
            *small_event(files, asked.rounds),
            *other_events(files, asked.rounds),
            *formatted_events(files, asked.rounds),
            *formatted_mix(files, asked.rounds),
            *plain_logging(files, asked.rounds),
            *rendezvous_events(files, asked.rounds),
            *together(files, asked.rounds),
            *single_calls(files, asked.calls),
            *resources(files, asked.events),
        ]
    where = machine()
    for name, value in where.items():
        print(f"{name}: {value}")
    print_table(figures)
    if asked.json:
        plain = [figure._replace(nanoseconds=()) for figure in figures]
        said = {"machine": where, "figures": [f._asdict() for f in plain]}
        asked.json.write_text(json.dumps(said, indent=1) + "\n")
    if asked.pyperf:
        write_pyperf(figures, asked.pyperf)
    if asked.chart:
        draw_chart(figures, asked.chart, where)
    return 0


if __name__ == "__main__":
    sys.exit(main())
