"""What can be known of a machine that builds or runs native Python projects: frozen values that rules look at."""
