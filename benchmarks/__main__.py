"""All benchmarks, one after the other."""

from benchmarks import (
    activation,
    client,
    compression,
    context,
    cues,
    flows,
    graph,
    history,
    hooks,
    ingestion,
    injection,
    judgements,
    links,
    locomo,
    mcp,
    multihop,
    panel,
    pipeline,
    stable,
    tokens,
    why,
    write_gate,
)
from benchmarks.languages import __main__ as languages

if __name__ == "__main__":
    activation.main([])
    compression.main([])
    context.main([])
    cues.main([])
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
    links.main([])
    stable.main([])
    ingestion.main([])
    history.main([])
    hooks.main([])
    mcp.main([])
    client.main([])
    graph.main([])
    panel.main([])
