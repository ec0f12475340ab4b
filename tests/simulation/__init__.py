"""Seeded random histories against a real shard and against a model of it, with crashes at every
step of a commit.

    world.py    the shard, its clock, its embedder, and the ways in which it dies
    model.py    what the documentation says the answers are, in plain Python objects
    recording_receivers.py  the receivers of webhooks
    script.py   which requests a seed makes
    scribe.py   an account that is told things and draws a graph, and what it then must know
    mover.py    an account that takes another one's export in, and is erased
    example_client.py  an account outside the model, which asks for every operation there is
    history.py  one seed: ask both, compare, look at everything now and then, and run every check of
                the store

`make test` runs a few seeds. More of them, or one again:  python -m tests.simulation --seeds 200
                                                           --seed-start 1
"""
