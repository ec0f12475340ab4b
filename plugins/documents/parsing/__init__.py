"""What reads the files of strangers. It runs in a confined process of its own (sandbox.py);
plugins/documents/parser.py starts it and talks to it.

The process is as small as it can be: to it this package is `parsing`, by itself, so that starting
it imports neither the plugin around it nor anything else of the service. Hence its files import
each other relatively, and nothing of ours besides.
"""
