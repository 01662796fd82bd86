import { type FormEvent, useEffect, useState } from "react";
import { useService } from "../../api/client";
import { Field } from "../../parts/Field";
import { Working } from "../../parts/states";
import { notifyFailure } from "../../state/notices";
import { changeTried } from "../../state/tried";
import { AgentField, AskedText, BUDGET, NumberField } from "./Fields";
import { type Asked, askedChanges } from "./asked";

/** The fields of a request. They follow the address; each request makes a context, which the address then names. */
export function ContextForm({ asked }: { readonly asked: Asked }) {
  const [draft, setDraft] = useState(asked);
  const make = useService().useMutation("post", "/api/contexts", {
    onError: (error) => notifyFailure("No context was made", error),
  });
  const address = JSON.stringify(asked);
  useEffect(() => setDraft(asked), [address]);
  const set = (change: Partial<Asked>) => setDraft({ ...draft, ...change });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (make.isPending) return;
    const { observation, session, agent, budget } = draft;
    make.mutate(
      { body: { observation: observation.trim(), session: session.trim(), agent: agent || null, budget: { total: budget } } },
      { onSuccess: (context) => changeTried({ ...askedChanges(draft), context: context.id }) },
    );
  };
  return (
    <form className="ask-form" onSubmit={submit}>
      <AskedText label="Observation" placeholder="Derive the total addressable market" value={draft.observation} set={(observation) => set({ observation })} />
      <div className="plan-options">
        <Field label="Session">
          {(id) => <input id={id} value={draft.session} maxLength={2000} placeholder="None" onChange={(event) => set({ session: event.target.value })} />}
        </Field>
        <AgentField value={draft.agent} set={(agent) => set({ agent })} />
        <NumberField {...BUDGET} value={draft.budget} set={(budget) => set({ budget })} />
        <button type="submit" className="primary" disabled={make.isPending || draft.observation.trim() === ""}>
          Compile
        </button>
        {make.isPending && <Working what="Compiling" />}
      </div>
    </form>
  );
}
