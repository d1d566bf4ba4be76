"""gunicorn's configuration of both upstreams: `gunicorn -c python:mockupstream.gunicorn_config`.

Environment variables, with their defaults:

MOCKUPSTREAM_FRAMEWORK        flask or aiohttp (aiohttp)
MOCKUPSTREAM_BIND             where to listen, HOST:PORT, or fd://N for an inherited socket (127.0.0.1:8000)
MOCKUPSTREAM_WORKERS          processes (4)
MOCKUPSTREAM_THREADS          threads of each Flask process (25)
MOCKUPSTREAM_WORKER_CLASS     of Flask: gthread, or sync, which closes each connection (gthread)
MOCKUPSTREAM_KEEP_ALIVE       seconds an idle connection is kept (75)
MOCKUPSTREAM_BACKLOG          connections that wait to be accepted (2048)
MOCKUPSTREAM_GRACEFUL_TIMEOUT seconds that requests in flight are given when the server is stopped (3)

Behaviour and limits are in mockupstream/settings.py.
"""

import os

from mockupstream.serving import child_exit, on_starting, post_fork
from mockupstream.settings import or_exit, raise_open_files, read_serving, read_settings

__all__ = ["child_exit", "on_starting", "post_fork"]

# Each worker reads them again; but here, nothing starts if one is wrong.
or_exit(read_settings, os.environ)
_serving = or_exit(read_serving, os.environ)
raise_open_files()

bind = _serving.bind
workers = _serving.workers
backlog = _serving.backlog
graceful_timeout = _serving.graceful_timeout

# Longer than the proxy keeps idle connections (60 s): what it sends on one that is just being closed fails.
keepalive = _serving.keep_alive

if _serving.framework == "flask":
    wsgi_app = "mockupstream.serving:flask_application()"
    # gunicorn's default worker, sync, has no keep-alive. With more than one thread, gunicorn quietly takes gthread.
    worker_class = _serving.worker_class
    threads = _serving.threads if worker_class == "gthread" else 1
    worker_connections = 16_384  # including idle ones; the default of 1,000 would close those above
else:
    wsgi_app = "mockupstream.serving:aiohttp_runner"
    worker_class = "mockupstream.aiohttp_app.UpstreamWorker"

accesslog = None  # a line for each request would be a good part of its cost
control_socket_disable = True
