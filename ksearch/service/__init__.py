"""What every face does with a run: begin it, hand out its work, take in answers. No printing, no arguments."""
