"""The measuring: a trial in a fresh process, the recorder that owns the clock, what it cost."""
