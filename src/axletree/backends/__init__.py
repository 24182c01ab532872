"""What Axletree knows of one GPU world each: axis values, wheel index, environment. Pure."""
