"""A model through Python and through Rust in turns, on one service: what `python/bench` runs.

A turn is a few runs, one after the other, of one of the two; a pair is a turn of each, the first of which changes from
pair to pair. Printed is the median of the differences of the pairs, with their spread.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time

import burst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a .tflite file")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--runs", type=int, default=5, help="runs of a turn")
    parser.add_argument("--programs", required=True, help="the folder with `burst` and `examples/turns`")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket = os.path.join(folder, "burst.sock")
        serve = [os.path.join(args.programs, "burst"), "serve", "--socket", socket]
        service = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        try:
            assert service.stdout.readline().startswith("listening on ")
            measure(args, socket)
        finally:
            service.terminate()
            service.wait()


def measure(args, socket):
    turns = [os.path.join(args.programs, "examples", "turns"), socket, args.model, str(args.runs)]
    rust = subprocess.Popen(turns, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    model = burst.connect(socket).load(args.model)

    def in_rust():
        rust.stdin.write("\n")
        rust.stdin.flush()
        return int(rust.stdout.readline()) / 1000

    def in_python():
        begin = time.perf_counter_ns()
        for _ in range(args.runs):
            model.run(60.0)
        return (time.perf_counter_ns() - begin) / 1000 / args.runs

    pairs = []
    # The first tenth warms up.
    warming = max(1, args.pairs // 10)
    for number in range(args.pairs + warming):
        if number % 2 == 0:
            ours, theirs = in_python(), in_rust()
        else:
            theirs, ours = in_rust(), in_python()
        if number >= warming:
            pairs.append((ours, theirs))
    rust.stdin.close()
    rust.wait()
    report(args, pairs)


def report(args, pairs):
    name = os.path.basename(args.model)
    print(f"{name}, {len(pairs)} pairs of turns of {args.runs} runs, microseconds a run")
    for what, values in (
        ("Python", [ours for ours, _ in pairs]),
        ("Rust", [theirs for _, theirs in pairs]),
        ("Python - Rust", [ours - theirs for ours, theirs in pairs]),
    ):
        low, middle, high = statistics.quantiles(values, n=4)
        print(f"{what:>14}: median {middle:8.1f}, quartiles {low:8.1f} {high:8.1f}, from {min(values):8.1f} to {max(values):8.1f}")


if __name__ == "__main__":
    main()
