"""The lab measured by itself: ratios, each with its spread, all of one run."""
