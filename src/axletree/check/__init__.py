"""Facts -> findings: the rule engine and the rules. Pure."""
