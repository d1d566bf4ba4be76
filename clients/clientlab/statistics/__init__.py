"""Statistics on samples and figures. No module here measures or renders."""
