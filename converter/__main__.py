"""Where the command starts: ``converter`` and ``python -m converter``."""

import sys


def main() -> None:
    """Run the command line. Scripts that ask for the version need not wait for the options of all commands."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _reopen()
    if sys.argv[1:] == ["--version"]:
        from converter import VERSIONS

        sys.stdout.write(f"{VERSIONS}\n")
        return
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is begun: no need for a traceback

    from converter import cli

    try:
        cli.main(prog_name="converter")
    except SystemExit as done:
        if "pyarrow" in sys.modules:
            _leave(done)
        raise


def _reopen() -> None:
    """Open what was closed (``>&-``): else the next file that is opened would be taken for it.

    What is written to a closed standard output must fail, so it is opened for reading.
    """
    import os

    for name, mode, flags in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def _leave(done: SystemExit) -> None:
    """End the process at once: threads of pyarrow may still run, and abort it where it takes its time to end.

    All that was written stands in its place already.
    """
    import os

    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(done.code if isinstance(done.code, int) else done.code is not None)


if __name__ == "__main__":
    main()
