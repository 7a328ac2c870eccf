"""Fuzz the converter: ``python tests/fuzzing/fuzz.py structured --count 100000 --jobs 2 --seed 1``, or ``bytes``.

``structured`` puts together records of every shape, made from the structs of both envelopes; ``bytes`` changes bytes of
the samples. Every input goes through both directions, and the judge looks at what comes out. The same seed, count and
number of jobs give the same inputs. Each kind of fault is saved to ``tests/fuzzing/found/``, where the test suite tries
it from then on. The last line of a run is JSON, and its numbers can be summed over runs. Set ``CONVERTER_SCHEMAS`` to a
folder with both published OpenAPI files to judge by these as well.
"""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    sys.exit(import_module("fuzzing.run").main())
