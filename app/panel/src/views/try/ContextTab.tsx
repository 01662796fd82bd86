import { useService } from "../../api/client";
import { TextField } from "../../parts/Field";
import { Empty } from "../../parts/states";
import { notifyFailure } from "../../state/notices";
import { type Asked, ask, useTried } from "../../state/tried";
import { AskForm } from "./AskForm";
import { Compiled } from "./Compiled";

/** The whole prompt that an agent would get: its parts, and what was cut. Each request makes a context. */
export function ContextTab() {
  const { made } = useTried().context;
  const make = useService().useMutation("post", "/api/contexts", {
    onError: (error) => notifyFailure("No context was made", error),
  });
  const compile = (asked: Asked<"context">) => {
    const { text, session, agent, budget } = asked;
    const body = { observation: text.trim(), session: session.trim(), agent: agent || null, budget: { total: budget } };
    make.mutate({ body }, { onSuccess: ({ id }) => ask("context", { ...asked, made: id ?? "" }) });
  };
  return (
    <>
      <AskForm
        tab="context"
        label="Observation"
        placeholder="Derive the total addressable market"
        action="Compile"
        pending={make.isPending && "Compiling"}
        asks={compile}
      >
        {({ session }, set) => <TextField label="Session" placeholder="None" value={session} set={(value) => set({ session: value })} />}
      </AskForm>
      {made === "" ? (
        <Empty title="See the whole prompt of an agent">
          <p>
            Type what an agent is asked, or has just seen. You see the parts of its context by tokens, and what was cut to fit the budget.
            Each context is stored.
          </p>
        </Empty>
      ) : (
        <Compiled id={made} />
      )}
    </>
  );
}
