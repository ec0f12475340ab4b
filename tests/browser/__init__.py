"""The dashboard in a real browser, against a real service: `make test-browser`."""
