"""Analysis: statistics on samples and figures. No module measures or renders."""
