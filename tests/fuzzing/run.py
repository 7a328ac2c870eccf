"""A run of the fuzzer: workers that make inputs and try them, a watch over the workers, and a table at the end."""

import argparse
import gc
import json
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
"""An input that takes more of the processor's time is a fault. A process that was stopped takes none."""

LOOK = 0.1
"""Seconds between two looks at the workers."""

STUCK = 600
"""A worker that was at the same input in so many looks is stuck where no alarm reaches it."""

MEMORY = 4 << 30
LARGEST = 1 << 20
FILES = 0.03
"""How many of the byte inputs are whole files."""


AGAIN = 0.1
"""How often an input that was there before is taken again: what a session remembers of it must change nothing."""

SEEN = 1 << 18
"""For how many inputs it is remembered that they were there."""


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
        return fresh(lambda: (recombiner.record(), False), rng)
    mutator = Mutator(made, rng)

    def following():
        whole = rng.random() < FILES
        return (mutator.file() if whole else mutator.record()), whole

    return fresh(following, rng)


def fresh(following, rng):
    """The same function, with an input that was there before let through no more than now and then."""
    seen = set()

    def made():
        found = following()
        while (mark := hash(found)) in seen and rng.random() > AGAIN:
            found = following()
        if len(seen) == SEEN:
            seen.clear()
        seen.add(mark)
        return found

    return made


@contextmanager
def alarmed():
    """While this lasts, an input that takes too long is stopped."""

    def hang(number, frame):
        raise HangError

    before = signal.signal(signal.SIGPROF, hang)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)


def faults_of(trial, data, whole):
    """What the judge says of one input, hangs and exhausted memory included. To be called while `alarmed`."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return list(trial.file(data) if whole else trial.record(data))
    except HangError:
        return [Fault("more seconds than any input may take", "", "default", whole, (data,))]
    except MemoryError:
        return [Fault("more memory than a worker may take", "", "default", whole, (data,))]
    except Exception as error:
        return [Fault(f"fuzzer: {type(error).__name__}", "", "default", whole, (data,))]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


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
        self.seen = self.looks = 0

    def show(self, number, data):
        size = min(len(data), LARGEST)
        self.memory[:16] = number.to_bytes(8, "big") + size.to_bytes(8, "big")
        self.memory[16 : 16 + size] = data[:LARGEST]

    def number(self):
        return int.from_bytes(self.memory[:8], "big")

    def data(self):
        return self.memory[16 : 16 + int.from_bytes(self.memory[8:16], "big")]

    def stands(self, worker):
        """In how many looks in a row a worker, given by its process id, ran and was at one and the same input.

        The looks are counted, and not the seconds, since all may have been stopped together.
        """
        number = self.number()
        self.looks = self.looks + 1 if number == self.seen and not stopped(worker) else 0
        self.seen = number
        return self.looks


def stopped(worker):
    """Whether a process of ours was stopped from outside, and not continued since."""
    return os.waitid(os.P_PID, worker, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None


def settle():
    """Let the collector pass over the pool, and say nothing to hypothesis, which counts its runs."""
    gc.freeze()
    gc.callbacks.clear()


def work(task, made, window, results):
    """Run one worker's share."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    settle()
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
    """All workers of a run: how many inputs they tried, the counts of outcomes, and what was found."""
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
        time.sleep(LOOK)
        ended = {number for number in left if not workers[number].is_alive()}
        while not results.empty():
            number, theirs, what = results.get()
            left.discard(number)
            outcomes.update(theirs)
            found.join(what)
        for number in list(left):
            if number in ended or windows[number].stands(workers[number].pid) > STUCK:
                workers[number].kill()
                kind = "a worker that died" if number in ended else "a worker that was stuck"
                found.add(Fault(kind, "", "default", False, (windows[number].data(),)))
                left.discard(number)
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(f"{sum(window.number() for window in windows):,} of {count:,} inputs", file=sys.stderr)
    for worker in workers:
        worker.join()
    return sum(window.number() for window in windows), outcomes, found


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


def line(chosen, tried, outcomes, counts, seconds):
    """The run in one line of JSON whose numbers can be summed over runs."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    row = {
        "way": chosen.way,
        "seed": chosen.seed,
        "inputs": tried,
        "written": outcomes["written"],
        "refused": outcomes.total() - outcomes["written"] - outcomes["files"],
        "faults": counts.total(),
        "seconds": round(seconds, 1),
        "processor_seconds": round(sum(one.ru_utime + one.ru_stime for one in used), 1),
        "hours": round(seconds / 3600, 4),
    }
    return json.dumps(row)


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
    tried, outcomes, found = run(chosen.way, chosen.count, chosen.jobs, chosen.seed, chosen.pool)
    seconds = time.monotonic() - began
    print(table(chosen, outcomes, found.counts, seconds))
    for fault in found.smallest.values():
        small = keep.smaller(fault)
        print(f"\n{fault.kind} ({fault.verb} {fault.setting}), kept as {keep.save(small).name}")
        print(f"  {small.records[-1][:400]!r}")
    print(f"\n{line(chosen, tried, outcomes, found.counts, seconds)}")
    return 1 if found.counts else 0
