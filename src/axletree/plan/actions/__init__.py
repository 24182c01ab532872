"""What planning knows of each action, one module an action: parameters, facts, and how a recipe's words become them."""
