"""Where the command starts: ``converter`` and ``python -m converter``."""

import sys


def main() -> None:
    """Run the command line. Scripts that ask for the version need not wait for the options of all commands."""
    if sys.argv[1:] == ["--version"]:
        from converter import VERSIONS

        sys.stdout.write(f"{VERSIONS}\n")
        return
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is begun: no need for a traceback

    from converter import cli

    cli.main(prog_name="converter")


if __name__ == "__main__":
    main()
