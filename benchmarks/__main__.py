"""All benchmarks, one after the other."""

from benchmarks import history, ingestion, locomo

if __name__ == "__main__":
    locomo.main([])
    ingestion.main([])
    history.main([])
