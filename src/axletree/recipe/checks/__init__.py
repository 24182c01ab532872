"""What a recipe must mean, beyond its structure: each module yields the faults of one concern, all of them."""
