"""Rules about wheels."""
