"""What runs in the measured process, where the recorder owns the clock."""
