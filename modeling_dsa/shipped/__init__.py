"""What ships with the package: settings, recipes and tables."""
