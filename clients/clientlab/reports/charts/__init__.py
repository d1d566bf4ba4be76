"""Charts of a run as data, and the picture file that is drawn from it. The HTML page draws the same data."""
