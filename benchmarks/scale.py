"""More cores, more than memory, more than one machine: what each is worth, one part at a time."""

from __future__ import annotations

import importlib

from benchmarks.common import parse_arguments

PARTS = {
    "continuing": "benchmarks.continuing",
    "dask": "benchmarks.scale_dask",
    "shards": "benchmarks.scale_shards",
    "threads": "benchmarks.scale_threads",
}  # the modules that have them, each with a `run(rounds, json)`


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--part", {"choices": sorted(PARTS), "default": "threads"}),
        (
            "--rounds",
            {
                "type": int,
                "default": 3,
                "help": "how often each case is timed, of which the least counts; 1 is a trial",
            },
        ),
    )
    importlib.import_module(PARTS[arguments.part]).run(arguments.rounds, arguments.json)


if __name__ == "__main__":
    main()
