"""The lab service: holds the schedule, gives workers their turns, keeps the runs, shows them."""
