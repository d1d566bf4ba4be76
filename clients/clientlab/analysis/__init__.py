"""The analysis: from sample logs to figures. Reads only; nothing here measures or renders."""
