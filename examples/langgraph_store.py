"""A graph of LangGraph without a model: it keeps what a user says in Priors, and looks it up in the next thread.

Run it beside `priors run`: `python examples/langgraph_store.py --url http://127.0.0.1:8000`.
"""

import argparse
from typing import TypedDict
from uuid import uuid4

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from priors_client import Client
from priors_client.langgraph import PriorsStore


class State(TypedDict, total=False):
    """The state of a run."""

    user: str
    said: str
    answer: str


def recall(state: State, *, store: BaseStore) -> State:
    """Answers with what the user said before."""
    found = store.search(("facts", state["user"]), query=state["said"], limit=3)
    return {"answer": "; ".join(item.value["text"] for item in found) or "nothing yet"}


def remember(state: State, *, store: BaseStore) -> State:
    """Keeps what the user says."""
    store.put(("facts", state["user"]), str(uuid4()), {"text": state["said"]}, index=["text"])
    return {}


def main() -> None:
    """Runs the graph three times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--workspace", default="langgraph-example")
    asked = parser.parse_args()
    builder = StateGraph(State)
    builder.add_node("recall", recall)
    builder.add_node("remember", remember)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "remember")
    builder.add_edge("remember", END)
    with Client(asked.url, workspace=asked.workspace) as client:
        graph = builder.compile(store=PriorsStore(client))
        for said in ("Green tea is what I drink.", "My train leaves at seven.", "Which tea do I drink?"):
            print(f"{said} -> {graph.invoke({'user': 'ann', 'said': said})['answer']}")


if __name__ == "__main__":
    main()
