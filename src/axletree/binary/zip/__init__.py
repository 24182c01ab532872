"""Zip archives: read strictly, deflated, written."""
