"""Where the code of a frame comes from: a package, a module of the standard library, a native library, the kernel."""

from __future__ import annotations

import re
from typing import Literal

from clientlab.analysis.stacks import Frame, Stack

KERNEL, LIBC, OPENSSL, LAB = "kernel", "libc", "openssl", "clientlab"
UNKNOWN = "unknown"

Wait = Literal["gil", "blocked"]
"""Why a thread takes no CPU time: it waits for the GIL, or is blocked otherwise."""

_SITE = re.compile(r"/(?:site|dist)-packages/([^/]+)(/?)")
_STANDARD = re.compile(r"/(?:lib|lib64)/(?:python|pypy)\d[\w.]*/(?:lib-dynload/)?([^/]+)")
_LAB = re.compile(r"/clientlab/[^/]+(?:/[^/]+)*\.py$")
_FROZEN = re.compile(r"<frozen ([\w]+)[\w.]*>")
_GENERATED = re.compile(r"<\w+ generated \w+ ([A-Za-z_]\w*)\.")
_INTERPRETER = re.compile(
    r"/(?:libpython|libpypy)\d[^/]*$|/(?:python|pypy)\d?[\d.t]*$|/[cC]?[Pp]ython-\d[^/]*/|"
    r"(?:^|/)(?:Modules|Objects|Include|Python|Parser)/[^/]+(?:/[^/]+)*\.[ch]$"
)
_OPENSSL = re.compile(r"/lib(?:ssl|crypto)[-.][^/]*$")
_LIBC = re.compile(r"/(?:libc|libpthread|libm|ld-linux[^/]*|ld-musl[^/]*)[-.][^/]*$|^\[vdso\]$|/libc\.so")
_LIBRARY = re.compile(
    r"/((?:lib)?[A-Za-z_][A-Za-z0-9_+]*?)(?:-[0-9a-f]{8,})?(?:\.(?:cpython|abi3|pypy)[^/]*)?[.-][^/]*so\b"
)
_ADDRESS = re.compile(r"0x[0-9a-f]+$")

_SYSTEM_CALLS = re.compile(
    "accept4?|bind|brk|clock_nanosleep|clone3?|close|connect|epoll_(?:create1?|ctl|pwait|wait)|eventfd_(?:read|write)|"
    "fcntl(?:64)?|v?fork|f?stat(?:at|x)?(?:64)?|futex|get(?:peername|pid|ppid|random|rusage|sockname|sockopt|tid)|ioctl|"
    "kill|listen|lseek(?:64)?|madvise|mmap(?:64)?|mprotect|mremap|munmap|nanosleep|open(?:at)?(?:64)?|pipe2|p?poll|"
    "pthread_cond_(?:broadcast|signal)|p?(?:read|write)v?(?:64)?|recv(?:from|mm?sg)?|sched_yield|p?select|sem_post|"
    "send(?:file|mm?sg|to)?|setsockopt|shutdown|socket(?:pair)?|syscall|timerfd_settime|uname|wait(?:4|pid)"
)
"""Functions of the C library that are system calls, or wake a thread by one: their time is the kernel's."""

_WAITS = re.compile(r"pthread_cond_(?:timed|clock)?wait|sem_(?:timed|clock)?wait|pthread_join|pthread_mutex_lock")
_LOCKS = re.compile(r"PyThread_acquire_lock|PySemaphore_Wait|PyMutex_Lock|_PyParkingLot_Park")
"""Functions of the interpreter that wait for a lock: the C library of many systems has no names below them."""

_GIL_WAITS = re.compile(r"pthread_cond_(?:timed|clock)?wait")
"""CPython waits for the GIL on a condition variable, and for its other locks on semaphores (Python/ceval_gil.c)."""


def is_interpreter(frame: Frame) -> bool:
    """Whether the frame is of Python's own machinery or of its standard library in C: it works for who called it."""
    in_extension = "/lib-dynload/" in frame.file and not frame.is_python
    return not frame.is_python and (in_extension or bool(_INTERPRETER.search(frame.file)))


def is_libc(frame: Frame) -> bool:
    """Whether the frame is of the C library."""
    return not frame.is_python and bool(_LIBC.search(frame.file))


def package_of(frame: Frame) -> str | None:
    """The package or library of one frame; None if the frame's file does not tell."""
    if frame.is_python:
        return _python_package(frame.file)
    if is_libc(frame):
        return LIBC
    if _OPENSSL.search(frame.file):
        return OPENSSL
    if ".libs/" in frame.file or not (found := _SITE.search(frame.file)):
        library = _LIBRARY.search(frame.file)
        return library[1] if library else None
    return _top_level(found[1])


def origin_of(stack: Stack) -> str:
    """What a sample's CPU time is attributed to, by the leaf of its stack.

    The interpreter works for the Python function that it runs. A frame whose file tells nothing counts for the one that
    called it. `UNKNOWN` without any.
    """
    for place in range(len(stack) - 1, -1, -1):
        frame = stack[place]
        if is_interpreter(frame):
            continue
        if is_libc(frame):
            return KERNEL if _in_system_call(stack, place) else LIBC
        if (package := package_of(frame)) is not None:
            return package
    return UNKNOWN


def wait_of(stack: Stack) -> Wait | None:
    """What the thread waits for, by the native leaf of its stack; None if it is at work, as far as the leaf tells."""
    names, caller = [], None
    for frame in reversed(stack):
        if not is_libc(frame):
            caller = frame
            break
        names.append(frame.name)
    if not names or caller is None:
        return None
    if any(map(_GIL_WAITS.search, names)) and (caller.is_python or is_interpreter(caller)):
        return "gil"
    return "blocked" if any(map(_WAITS.search, names)) or _LOCKS.search(caller.name) else None


def has_no_symbols(frame: Frame) -> bool:
    """Whether the library has no name for the function."""
    return bool(_ADDRESS.match(frame.name))


def _in_system_call(stack: Stack, place: int) -> bool:
    """Whether the C library's frames at the end of the stack, `place` the last of them, are a system call."""
    while place >= 0 and is_libc(stack[place]):
        if _SYSTEM_CALLS.fullmatch(stack[place].name.lstrip("_").removeprefix("libc_").removeprefix("GI_")):
            return True
        place -= 1
    return False


def _python_package(file: str) -> str | None:
    if file.startswith("<"):
        found = _FROZEN.match(file) or _GENERATED.match(file)
        return found[1] if found else None
    if found := _SITE.search(file):
        return _top_level(found[1])
    if _LAB.search(file):
        return LAB
    if found := _STANDARD.search(file):
        return _top_level(found[1])
    return file.rpartition("/")[2] or None


def _top_level(name: str) -> str:
    """The package or module of an entry of site-packages: ``pycurl.cpython-311-x86_64-linux-gnu.so`` is pycurl."""
    return name.partition(".")[0]
