"""Packages of an SDK: who owns which file of its install tree, and what selector, runtime and devel packages hold."""
