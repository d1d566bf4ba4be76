"""What the lab found, written from run files that anybody can check or measure anew."""
