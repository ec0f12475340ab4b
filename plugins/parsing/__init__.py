"""What reads the files of strangers. It runs in a confined process of its own (confinement.py) and imports nothing of the service
but its limits; plugins/document_parser.py starts it and talks to it.
"""
