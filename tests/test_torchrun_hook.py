"""
What the hook makes of the command line; torch is not needed.
"""

import pytest

import elastic_events_hook as hook


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("--event-log-handler=elastic_events train.py", "elastic_events"),
        ("--event-log-handler elastic_events train.py", "elastic_events"),
        ("--event_log_handler elastic_events train.py", "elastic_events"),
        ("--event_log_handler=console train.py", "console"),
        ("--event-log elastic_events train.py", "elastic_events"),
        ("--e=elastic_events train.py", "elastic_events"),
        (
            "--nproc-per-node 2 --event-log-handler elastic_events t.py",
            "elastic_events",
        ),
        (
            "--standalone --event-log-handler elastic_events t.py",
            "elastic_events",
        ),
        (
            "-m --event-log-handler elastic_events package.train",
            "elastic_events",
        ),
        ("-t 3 -r3 --event-log-handler=elastic_events t.py", "elastic_events"),
        ("--rdzv-id a_b --event-log-handler=e_e t.py", "e_e"),
        ("train.py --event-log-handler=elastic_events", None),
        ("--nproc-per-node 2 t.py --event-log-handler=elastic_events", None),
        ("--standalone t.py --event-log-handler=elastic_events", None),
        ("-m package --event-log-handler=elastic_events", None),
        ("--no-python sh --event-log-handler=elastic_events", None),
        ("-- --event-log-handler=elastic_events", None),
        ("--event-log-handler", ""),
        ("--event-log-handler=a --event-log-handler=b t.py", "b"),
        ("--rdzv-conf --event-log-handler=x t.py", None),
        ("--eval=elastic_events t.py", None),
        ("", None),
    ],
)
def test_named_handler(arguments, named):
    """The flag is found in every spelling, up to the script."""
    assert named == hook._named_handler(arguments.split())


@pytest.mark.parametrize(
    ("environment", "arguments", "asked"),
    [
        ({}, [], False),
        ({"PET_EVENT_LOG_HANDLER": "elastic_events"}, [], True),
        ({"PET_EVENT_LOG_HANDLER": "console"}, [], False),
        ({"ELASTIC_EVENTS_DESTINATION": "console"}, [], True),
        ({"ELASTIC_EVENTS_DESTINATION": ""}, [], False),
        ({}, ["--event-log-handler=elastic_events"], True),
        (
            {"PET_EVENT_LOG_HANDLER": "elastic_events"},
            ["--event-log-handler=console"],
            False,
        ),
    ],
)
def test_asked(monkeypatch, environment, arguments, asked):
    """Flag, torchrun's variable and ours each ask; the flag goes first."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert asked == hook._is_asked(arguments)


def test_not_a_backend():
    """Chosen as a rendezvous backend, it says what to choose instead."""
    with pytest.raises(ValueError, match="--rdzv-backend=c10d"):
        hook._refuse("parameters")
