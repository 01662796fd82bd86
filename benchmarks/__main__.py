"""All benchmarks, one after the other."""

from benchmarks import compression, graph, history, ingestion, injection, locomo, panel, stable, write_gate

if __name__ == "__main__":
    compression.main([])
    injection.main([])
    write_gate.main([])
    locomo.main([])
    stable.main([])
    ingestion.main([])
    history.main([])
    graph.main([])
    panel.main([])
