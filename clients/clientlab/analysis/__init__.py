"""From the samples and counters of a trial to its figures, shares and bottleneck."""
