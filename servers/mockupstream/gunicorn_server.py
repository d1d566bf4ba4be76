"""gunicorn that imports nothing from the current folder: `python -P -m
mockupstream.gunicorn_server -c python:…`.

gunicorn's own command puts the current folder first on the path, even with `python -P`.
In a clone of aiohttp, the upstream would serve with the clone's code.
"""

from gunicorn.app.wsgiapp import WSGIApplication


class UpstreamServer(WSGIApplication):  # type: ignore[misc] # gunicorn has no types
    """gunicorn that imports what is installed."""

    def chdir(self) -> None:
        """Do nothing: gunicorn would enter the configured folder, which is the current
        one, and import from it.
        """


if __name__ == "__main__":
    UpstreamServer("%(prog)s [OPTIONS] [APP_MODULE]", prog="gunicorn").run()
