"""Work that outlives a request: releases, counts of rows and openings of query sessions, done by worker processes.

job_runner   do one job, and write down what the ledger says it came to
job_worker   a process that takes jobs, and the server's side: start workers, wake them, replace dead ones
"""
