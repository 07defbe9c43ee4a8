"""Runs under any of TensorFlow's interpreters: imports TensorFlow once, then forks for every script that it is given.

Importing takes seconds; a fork of a process that has done nothing else takes none, and what a script does to it ends
with the fork. Each connection to the Unix socket of the first argument is a script: a line of JSON, [text, arguments,
file for output, file for errors], answered with the exit status. Ends with its standard input. The other end is
tensorflow_processes.Forks.
"""

import json
import os
import select
import signal
import socket
import sys
import traceback

import tensorflow  # noqa: F401 - for the forks


def run(script, arguments, out, errors):
    """The script's exit status."""
    for number, path in ((1, out), (2, errors)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["-c", *arguments]
    try:
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def main(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(8)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the forks are not waited for
        print("listening on " + path, flush=True)
        while True:
            ready = select.select([listener, sys.stdin], [], [])[0]
            if sys.stdin in ready:
                return
            connection = listener.accept()[0]
            if os.fork():
                connection.close()
                continue
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            with connection.makefile("rw") as lines:
                print(run(*json.loads(lines.readline())), file=lines)
            os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
