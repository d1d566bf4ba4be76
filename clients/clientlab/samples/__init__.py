"""The sample log of a trial: its format, writer and reader."""
