"""One function an action: request, inputs and ports in; tree, facts and findings out."""
