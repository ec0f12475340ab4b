"""How well the language heads read, and how they were taught: see __main__.py."""
