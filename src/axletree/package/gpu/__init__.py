"""GPUs, what code they run, variants of wheels."""
