"""Work that outlives a request: releases and openings of sessions, done by worker processes.

jobs        ask for work, and wait for it by watching its row
runner      do one job, and write down what the ledger says it came to
releasing   the kind of job that releases a plan
worker      a process that takes jobs; it finishes what it has when its server is gone
processes   the server's side: start workers, wake them, replace dead ones, let them finish
"""
