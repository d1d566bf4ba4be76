"""The link: a process that relays TCP connections as if a network were in between (docs/link.md)."""
