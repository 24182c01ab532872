"""How a project's build system is run: one module for each, one function ``build`` in each."""
