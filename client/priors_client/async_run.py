"""A run as a block of asynchronous client code. `run.py` is made from this file by `client/generate.py`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from uuid import uuid4

from msgspec import UNSET, UnsetType

from priors_client.async_operations import AsyncOperations
from priors_client.models import Activation, HistoryView, PlanCheck, SavedRunView


class AsyncRun:
    """A run that is under way: what it asks for is logged under its id, and its end is stored with it."""

    def __init__(
        self,
        client: AsyncOperations,
        task: str,
        *,
        agent: str = "",
        task_type: str = "",
        run_id: str = "",
        user: str = "",
        case: str = "",
        version: str = "",
    ) -> None:
        """Without a `run_id` it gets one of its own. `case` and `version` say of which case it is a version."""
        self._client, self._completed = client, False
        self.task, self.agent, self.task_type, self.user = task, agent, task_type, user
        self.run_id = run_id or f"run-{uuid4()}"
        named = {"case": case, "version": version}
        self._metadata = {name: value for name, value in named.items() if value}

    async def __aenter__(self) -> Self:
        """Records that the run has begun."""
        await self._client.record_run(
            self.run_id,
            task=self.task,
            task_type=self.task_type,
            agent=self.agent or UNSET,
            user=self.user,
            started_at=datetime.now(UTC),
            metadata=self._metadata or UNSET,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Records that the run has ended, and by which error, where `complete` did not succeed.

        If the block raised an error and recording it fails, its own error is raised, with a note of the failure.
        """
        if self._completed:
            return
        failed = {} if kind is None else {"error": f"{kind.__name__}: {error}"}
        try:
            await self._client.complete_run(self.run_id, finished_at=datetime.now(UTC), metadata=failed, user=self.user)
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"The end of run {self.run_id} was not recorded: {failure}")

    async def history(
        self, query: str = "", *, k: int | UnsetType = UNSET, budget_tokens: int | UnsetType = UNSET
    ) -> HistoryView:
        """Returns what earlier work found on a question; without one, on the run's task."""
        return await self._client.history(
            query or self.task,
            agent=self.agent or UNSET,
            run_id=self.run_id,
            k=k,
            budget_tokens=budget_tokens,
            user=self.user,
        )

    async def activate(self, plan: str, *, files: Sequence[str] = ()) -> Activation:
        """Returns what was learnt about an act that is about to be done."""
        return await self._client.activate(
            plan, files=files, agent=self.agent or UNSET, run_id=self.run_id, user=self.user
        )

    async def check(self, plan: str, *, files: Sequence[str] = ()) -> PlanCheck:
        """Returns a verdict for each step of a plan."""
        return await self._client.check(
            plan, files=files, task_type=self.task_type, agent=self.agent or UNSET, run_id=self.run_id, user=self.user
        )

    async def complete(
        self,
        output: str,
        score: float | UnsetType = UNSET,
        *,
        verdict: str | UnsetType = UNSET,
        issues: Sequence[str] | UnsetType = UNSET,
        wait: bool = True,
    ) -> SavedRunView:
        """Stores what the run produced and how it was judged; by default it waits for what is remembered of it."""
        saved = await self._client.complete_run(
            self.run_id,
            output=output,
            final_score=score,
            verdict=verdict,
            issues=issues,
            finished_at=datetime.now(UTC),
            user=self.user,
            remember=True,
            wait=wait,
        )
        self._completed = True
        return saved
