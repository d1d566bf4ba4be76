"""What processes use, and what the machine lets them use."""
