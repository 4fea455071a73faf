"""
How it is measured: in turn, in one run, as ratios, for machines are noisy.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

from contenders import Run
from workloads import Events

from elastic_events.formats import Format


class Job(NamedTuple):
    """
    A contender and what it records.
    """

    run: Run
    events: Events


def nanoseconds(job: Job) -> float:
    """
    Return what recording one event takes.
    """
    begin = perf_counter_ns()
    job.run(job.events)
    return (perf_counter_ns() - begin) / len(job.events)


def in_turn(jobs: Mapping[str, Job], rounds: int) -> dict[str, list[float]]:
    """
    Return the times of each job, measured one after the other, round by round.
    """
    for job in jobs.values():
        job.run(job.events)
    times: dict[str, list[float]] = {name: [] for name in jobs}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, job in jobs.items():
                times[name].append(nanoseconds(job))
    finally:
        gc.enable()
    return times


def ratio(times: list[float], base: list[float]) -> float:
    """
    Return the median of the ratios of each round.
    """
    pairs = zip(times, base, strict=True)
    return statistics.median(mine / theirs for mine, theirs in pairs)


def with_threads(job: Job, threads: int) -> float:
    """
    Return the time of one event when so many threads record at once.
    """
    workers = [
        threading.Thread(target=job.run, args=(job.events,))
        for _ in range(threads)
    ]
    begin = perf_counter_ns()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return (perf_counter_ns() - begin) / (len(job.events) * threads)


def gain_of_two_processes(
    prepare: Callable[[Path], Run], file: Path, events: Events
) -> float:
    """
    Return how many times more events two processes write than one.
    """
    rates = [_rate(prepare, file, events, count) for count in (1, 2)]
    return rates[1] / rates[0]


def _rate(
    prepare: Callable[[Path], Run], file: Path, events: Events, processes: int
) -> float:
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(processes + 1)

    def work() -> None:
        run = prepare(file)
        run(events)
        ready.wait(timeout=60)
        for _ in range(60):
            run(events)

    workers = [context.Process(target=work) for _ in range(processes)]
    for worker in workers:
        worker.start()
    ready.wait(timeout=60)
    begin = perf_counter_ns()
    for worker in workers:
        worker.join(timeout=300)
    return processes / (perf_counter_ns() - begin)


class Latency(NamedTuple):
    """
    The time of single calls, in nanoseconds.
    """

    p50: float
    p99: float
    longest: float


def latency(job: Job, calls: int) -> Latency:
    """
    Return how long single calls take.
    """
    singles = [[event] for event in job.events]
    times = []
    for number in range(calls):
        single = singles[number % len(singles)]
        begin = perf_counter_ns()
        job.run(single)
        times.append(perf_counter_ns() - begin)
    times.sort()
    return Latency(times[calls // 2], times[calls * 99 // 100], times[-1])


def resident_growth(job: Job, events: int) -> int:
    """
    Return by how many bytes the process grows over so many events.
    """
    for _ in range(20):
        job.run(job.events)
    before = _resident()
    for _ in range(events // len(job.events)):
        job.run(job.events)
    return _resident() - before


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def import_ratio(ours: str, theirs: str, rounds: int) -> float:
    """
    Return how much longer importing *ours* takes than *theirs*.
    """
    ratios = []
    _import_time(ours)
    for _ in range(rounds):
        base = _import_time(theirs)
        ratios.append(_import_time(ours) / base)
    return statistics.median(ratios)


def _import_time(statement: str) -> float:
    code = (
        "from time import perf_counter as now; begin = now();"
        f"{statement}; print(now() - begin)"
    )
    environment = dict(os.environ)
    # As installed: what was compiled is kept.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(done.stdout)


def missing_in(file: Path, events: Events) -> list[str] | None:
    """
    Return which fields the lines of *file* lack, `None` if they are wrong.
    """
    text = file.read_text(errors="replace")
    lines = text.splitlines()[-len(events) :]
    try:
        for line in lines:
            json.loads(line)
    except ValueError:
        return None
    if not lines:
        return None
    last, event = lines[-1], events[-1]
    # Each in whatever form: as it is, or within a string.
    flat = last.replace("\\", "")
    wanted = {
        "name": f'"{event.name}"',
        "source": '"WORKER"',
        "hostname": f'"{os.uname().nodename}"',
        "pid": str(os.getpid()),
        **{f"metadata.{key}": f'"{key}"' for key in event.metadata},
    }
    return [name for name, said in wanted.items() if said not in flat]


def are_forms_of(file: Path, form: Format, events: Events) -> bool:
    """
    Tell whether the last lines of *file* are the *form* of *events*.
    """
    lines = file.read_text().splitlines()[-len(events) :]
    try:
        forms = [json.loads(line) for line in lines]
        said = list(map(form.back, forms)) if form.back else forms
        found = [(e["name"], e["source"], e["metadata"]) for e in said]
    except (KeyError, ValueError):
        return False
    return found == [
        (each.name, each.source.value, each.metadata) for each in events
    ]


def are_forms_of_lines(
    file: Path, form: Format, native: Path, count: int
) -> bool:
    """
    Tell whether the last *count* lines of *file* are those of *native*.

    They have the *form*, and other times and numbers.
    """
    lines, wanted = (
        [json.loads(line) for line in each.read_text().splitlines()[-count:]]
        for each in (file, native)
    )
    try:
        found = [form.back(line) if form.back else line for line in lines]
    except ValueError:
        return False
    own = ("timestamp", "time", "seq")
    for line in (*found, *wanted):
        for key in own:
            line.pop(key, None)
    return found == wanted
