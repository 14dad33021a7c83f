"""transformers' own tests of a model family, run against this one."""
