"""Recipes: TOML text -> frozen model -> variants -> targets. Pure: text and mappings come in, values go out."""
