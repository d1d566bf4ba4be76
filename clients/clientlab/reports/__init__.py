"""Reports: a run document in, text or a picture out."""
