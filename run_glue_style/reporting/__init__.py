"""What a run leaves for its readers: results, tables, plots and cards."""
