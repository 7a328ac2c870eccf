"""A run of the fuzzer: workers that make inputs and try them, a watch over the workers, and a table at the end."""

import argparse
import gc
import mmap
import os
import resource
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from multiprocessing import get_context
from random import Random
from typing import NamedTuple

from fuzzing import keep, pool
from fuzzing.bytewise import Mutator
from fuzzing.recombine import Recombiner
from fuzzing.trial import Fault, Trial

SECONDS = 5
"""An input that takes longer is a fault."""

STUCK = 60
"""A worker that goes to no next input for so many seconds is stuck where no alarm reaches it."""

MEMORY = 4 << 30
LARGEST = 1 << 20
FILES = 0.03
"""How many of the byte inputs are whole files."""


class HangError(BaseException):
    """An input took too long. No `except Exception` takes this for a fault of the record."""


class Task(NamedTuple):
    """What one worker has to do."""

    way: str
    seed: int
    worker: int
    count: int


# ---------------------------------------------------------------- one input


def inputs(way, made, rng):
    """A function that gives the next input, and whether it is a whole file."""
    if way == "structured":
        recombiner = Recombiner(made, rng)
        return lambda: (recombiner.record(), False)
    mutator = Mutator(made, rng)

    def following():
        whole = rng.random() < FILES
        return (mutator.file() if whole else mutator.record()), whole

    return following


@contextmanager
def alarmed():
    """While this lasts, an input that takes too long is stopped."""

    def hang(number, frame):
        raise HangError

    before = signal.signal(signal.SIGALRM, hang)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


def faults_of(trial, data, whole):
    """What the judge says of one input, hangs and exhausted memory included. To be called while `alarmed`."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return list(trial.file(data) if whole else trial.record(data))
    except HangError:
        return [Fault("more seconds than any input may take", "", "default", whole, (data,))]
    except MemoryError:
        return [Fault("more memory than a worker may take", "", "default", whole, (data,))]
    except Exception as error:
        return [Fault(f"fuzzer: {type(error).__name__}", "", "default", whole, (data,))]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


# ---------------------------------------------------------------- workers


class Found:
    """The kinds of faults that were found: how often each, and the smallest input of each."""

    def __init__(self):
        self.counts = Counter()
        self.smallest = {}

    def add(self, fault, count=1):
        self.counts[fault.kind] += count
        known = self.smallest.get(fault.kind)
        if known is None or sum(map(len, fault.records)) < sum(map(len, known.records)):
            self.smallest[fault.kind] = fault

    def join(self, other):
        for kind, fault in other.smallest.items():
            self.add(fault, other.counts[kind])


class Window:
    """Shared memory in which a worker shows how far it is and what it looks at, in case that it does not come back."""

    def __init__(self):
        self.memory = mmap.mmap(-1, LARGEST + 16)
        self.seen, self.since = 0, time.monotonic()

    def show(self, number, data):
        size = min(len(data), LARGEST)
        self.memory[:16] = number.to_bytes(8, "big") + size.to_bytes(8, "big")
        self.memory[16 : 16 + size] = data[:LARGEST]

    def number(self):
        return int.from_bytes(self.memory[:8], "big")

    def data(self):
        return self.memory[16 : 16 + int.from_bytes(self.memory[8:16], "big")]

    def stands(self):
        """For how many seconds the worker has been at one input."""
        if (number := self.number()) != self.seen:
            self.seen, self.since = number, time.monotonic()
        return time.monotonic() - self.since


def work(task, made, window, results):
    """Run one worker's share."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    gc.freeze()  # the pool is no cycle to look for
    rng = Random(f"{task.way} {task.seed} {task.worker}")
    following, trial, found = inputs(task.way, made, rng), Trial(rng), Found()
    with alarmed():
        for number in range(1, task.count + 1):
            data, whole = following()
            window.show(number, data)
            for fault in faults_of(trial, data, whole):
                found.add(fault)
    results.put((task.worker, trial.counts, found))


def run(way, count, jobs, seed, size):
    """All workers of a run: the counts of outcomes, and what was found."""
    made = pool.make(seed, size)
    context = get_context("fork")  # the workers share the pool
    results, outcomes, found = context.SimpleQueue(), Counter(), Found()
    shares = [count // jobs + (worker < count % jobs) for worker in range(jobs)]
    windows = [Window() for _ in shares]
    workers = [
        context.Process(target=work, args=(Task(way, seed, number, share), made, windows[number], results))
        for number, share in enumerate(shares)
    ]
    for worker in workers:
        worker.start()
    left, said = set(range(jobs)), time.monotonic()
    while left:
        time.sleep(0.1)
        ended = {number for number in left if not workers[number].is_alive()}
        while not results.empty():
            number, theirs, what = results.get()
            left.discard(number)
            outcomes.update(theirs)
            found.join(what)
        for number in list(left):
            if number in ended or windows[number].stands() > STUCK:
                workers[number].kill()
                kind = "a worker that died" if number in ended else "a worker that was stuck"
                found.add(Fault(kind, "", "default", False, (windows[number].data(),)))
                left.discard(number)
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(f"{sum(window.number() for window in windows):,} of {count:,} inputs", file=sys.stderr)
    for worker in workers:
        worker.join()
    return outcomes, found


# ---------------------------------------------------------------- the command


def table(chosen, outcomes, counts, seconds):
    """The run in rows. Each input is an outcome in both directions, and a whole file several."""
    refused = Counter(outcomes)
    rows = {
        "inputs": f"{chosen.count:,} ({chosen.way}, seed {chosen.seed}, {chosen.jobs} workers)",
        "of these, whole files": f"{refused.pop('files', 0):,}",
        "written": f"{refused.pop('written', 0):,}",
        "refused": f"{refused.total():,}",
        **{f"  {code}": f"{number:,}" for code, number in refused.most_common()},
        "distinct faults": f"{len(counts):,}",
        **{f"  {kind}": f"{number:,}" for kind, number in counts.most_common()},
        "seconds": f"{seconds:,.1f}",
        "inputs a second": f"{chosen.count / seconds:,.0f}",
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())


def main(arguments=None):
    """The command; its exit status is 1 where a fault was found."""
    parser = argparse.ArgumentParser(prog="fuzz.py", description="Fuzz the converter.")
    parser.add_argument("way", choices=("structured", "bytes"), help="how inputs are made")
    parser.add_argument("--count", type=int, default=100_000, help="inputs in all (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed, the same inputs (%(default)s)")
    parser.add_argument("--pool", type=int, default=500, help="records that hypothesis makes first (%(default)s)")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    outcomes, found = run(chosen.way, chosen.count, chosen.jobs, chosen.seed, chosen.pool)
    print(table(chosen, outcomes, found.counts, time.monotonic() - began))
    for fault in found.smallest.values():
        small = keep.smaller(fault)
        print(f"\n{fault.kind} ({fault.verb} {fault.setting}), kept as {keep.save(small).name}")
        print(f"  {small.records[-1][:400]!r}")
    return 1 if found.counts else 0
