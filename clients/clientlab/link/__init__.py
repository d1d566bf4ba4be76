"""The link: a process that relays TCP connections like a network (docs/link.md)."""
