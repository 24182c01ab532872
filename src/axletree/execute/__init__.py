"""Run a plan: the driver's loop, the local executor, the entry that runs one stage, the actions."""
