"""What the service promises to everybody who calls it, checked over all operations at once."""
