"""farthing beside what a user would pick instead: `make bench`.

    cases        what is composed
    truth        the same answers by an independent route, so that errors are errors and not opinions
    contenders   the libraries, each called the way its users call it
    worker       one measurement in a fresh process: answer, seconds, peak memory
    race         which contender runs on which case, within a cap
    samplers     cells of noise per second, beside OpenDP's sampler
    tables       plans on big tables beside the same answers by SQL written by hand
    audits       Laplace noise of peers and ours, audited
    workloads    errors of many queries on one histogram, beside published figures
    mixed        errors of ordinary statistics beside every peer that installs
    targets      the promises about speed, with target and measured value
    report       tables on the screen, Markdown and JSON in benchmarks/results/

Timings are printed, never asserted: machines differ, and a slow one is not a fault.
"""
