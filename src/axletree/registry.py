"""Every backend, action and rule that ships: the one module that knows them all."""
