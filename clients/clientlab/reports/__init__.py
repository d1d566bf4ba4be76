"""The reports: a run document in, text or a picture out. Only here are seconds shown as milliseconds."""
