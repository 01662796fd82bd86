import { type FormEvent, useState } from "react";
import { WORKSPACE_NAME } from "../api/client";
import { changeAddress, useAddress } from "../state/address";

/** The tenant, which the address names; empty is the service's default. */
export function Workspace() {
  const named = useAddress().params.get("workspace") ?? "";
  const [draft, setDraft] = useState<string | null>(null);
  const apply = (event: FormEvent) => {
    event.preventDefault();
    if (draft !== null && draft !== named) changeAddress({ workspace: draft.trim(), memory: null, run: null });
    setDraft(null);
  };
  return (
    <form className="workspace" onSubmit={apply}>
      <label htmlFor="workspace">Workspace</label>
      <input
        id="workspace"
        value={draft ?? named}
        placeholder="default"
        pattern={WORKSPACE_NAME}
        maxLength={64}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => setDraft(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => {
          if (event.key === "Escape") setDraft(null);
        }}
      />
    </form>
  );
}
