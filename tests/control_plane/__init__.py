"""Seeded histories of the whole control plane: shards on several machines, two supervisors, two
watches, gateways and an object store, all in one thread and on a clock of their own.

    hub.py       strands in place of threads, and the time that they see: what runs next is drawn
                 from the seed, and time passes when all of them wait
    threads.py   what `threading`, `queue` and `time` are meanwhile
    objects.py   an object store in memory, at the other end of a bad line
    machines.py  machines, the shards on them, and messages between them
    ledger.py    a plugin whose rows are numbers that only grow, and which tells somebody outside
    history.py   one seed: clients, faults, and what is held throughout

Shards, leases, shippers, snapshots, restores, supervisors, watches and slot maps are the service's
own. `make test` runs a few seeds; more of them:  python -m loadtests.control_plane --seeds 1000
"""
