"""Starts a cold trial: imports what a user's script would, before anything of the lab.

Started as ``python -P cold_start.py MODULES HIDDEN …``, with the arguments of `process`
at the end. Both are names of modules, separated by blanks. Imports of HIDDEN fail until
the process ends, as if those modules were not installed: libraries also import modules
during a request. The first line of its standard input is the moment when the
interpreter was started, in monotonic seconds.
"""

import sys
from time import perf_counter, process_time

if __name__ == "__main__":
    modules, hidden, *arguments = sys.argv[1:]
    for module in hidden.split():
        # None: an import of it fails.
        sys.modules.setdefault(module, None)  # type: ignore[arg-type]
    for module in modules.split():
        __import__(module)  # importing importlib would take time
    imported = perf_counter()
    cpu_seconds = process_time()
    import_seconds = imported - float(sys.stdin.readline())

    from clientlab.trial import process  # its imports must not count

    process.main(arguments, import_seconds, cpu_seconds)
