"""The runs: what is to be measured (experiment, schedule), how it is carried out, and the file that it leaves."""
