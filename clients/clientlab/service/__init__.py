"""The lab service: holds the schedule, gives workers their assignments, keeps the runs, shows them."""
