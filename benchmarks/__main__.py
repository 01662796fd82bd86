"""All benchmarks, one after the other."""

from benchmarks import (
    activation,
    cues,
    day,
    flows,
    graph,
    history,
    hooks,
    ingestion,
    injection,
    judgements,
    locomo,
    multihop,
    panel,
    pipeline,
    tokens,
    why,
    write_gate,
)
from benchmarks.languages import __main__ as languages

if __name__ == "__main__":
    activation.main([])
    cues.main([])
    day.main()
    flows.main([])
    injection.main([])
    judgements.main([])
    pipeline.main([])
    write_gate.main([])
    tokens.main([])
    why.main([])
    locomo.main([])
    multihop.main([])
    languages.main([])
    ingestion.main([])
    history.main([])
    hooks.main([])
    graph.main([])
    panel.main([])
