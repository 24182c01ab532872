"""Run a plan: the driver's loop, the local runner, the entry that runs one stage, the actions."""
