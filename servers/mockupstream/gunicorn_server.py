"""gunicorn that imports nothing of the current folder: `python -P -m mockupstream.gunicorn_server -c python:…`.

gunicorn's own command puts the current folder first on the path, and even `python -P` does not prevent that. In a clone
of aiohttp, the upstream would serve with the clone's code.
"""

from gunicorn.app.wsgiapp import WSGIApplication


class UpstreamServer(WSGIApplication):  # type: ignore[misc] # gunicorn has no types
    """gunicorn that imports what is installed."""

    def chdir(self) -> None:
        """Do nothing. gunicorn would enter the configured folder, which is the current one, and import from it."""


def main() -> None:
    """Serve as the command line says, which is that of gunicorn."""
    UpstreamServer("%(prog)s [OPTIONS] [APP_MODULE]", prog="gunicorn").run()


if __name__ == "__main__":
    main()
