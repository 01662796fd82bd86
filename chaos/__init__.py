"""The chaos harness: faults at random points of real work, and what became of the work.

`python -m chaos` starts two services and a worker on one data directory, gives them work, strikes at a random moment,
waits until they have recovered by themselves, and compares what is stored with what was acknowledged.
"""
