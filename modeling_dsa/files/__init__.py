"""Reading tables and texts, and writing files that are whole or not there."""
