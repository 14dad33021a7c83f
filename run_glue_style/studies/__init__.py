"""Studies: many runs of the scripts that make one table, planned, made one after the other and resumed."""
