"""Running a plan: the schedule, one trial after the other, and the rules that stop the
run.
"""
