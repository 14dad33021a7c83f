"""The command `dsa`: a module for each verb."""
