import { useWorkspaces } from "../api/queries";
import { changeAddress, useAddress } from "../state/address";

/** The workspaces to choose from; without a name, the address means the service's default. */
export function Workspace() {
  const named = useAddress().params.get("workspace") ?? "";
  const found = useWorkspaces();
  const names = found.data?.map(({ name }) => name) ?? [];
  const unknown = named !== "" && found.data !== undefined && !names.includes(named);
  const choose = (name: string) =>
    changeAddress(
      { workspace: name, memory: null, run: null, recall: null, note: null, item: null, session: null, case: null },
      { follow: true },
    );
  return (
    <div className="workspace">
      <label htmlFor="workspace">Workspace</label>
      <select id="workspace" aria-label="Workspace" value={named} aria-invalid={unknown} onChange={(event) => choose(event.target.value)}>
        <option value="">Default</option>
        {named !== "" && !names.includes(named) && <option value={named}>{unknown ? `Unknown: ${named}` : named}</option>}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <span className="visually-hidden" role="status">
        {unknown && `There is no workspace named ${named}.`}
      </span>
    </div>
  );
}
