"""What ships with the package: settings, recipes, tables and examples."""
