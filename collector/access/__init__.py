"""Who may do what: keys, their scopes and limits, and the right to be forgotten."""
