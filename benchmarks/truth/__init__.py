"""What the lab states, checked where the truth is known: ``scripts/bench truth``. A module for each group of rows."""
