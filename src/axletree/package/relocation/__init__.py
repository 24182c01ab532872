"""A tree of the build machine -> one that loads where only it, its siblings and what a platform promises are."""
