import { type FormEvent, useState } from "react";
import { forgetAnswers } from "../api/client";
import { apiKey, keepKey } from "../state/session";

/** Shown when the service refuses a request for want of its key. */
export function KeyGate() {
  const [key, setKey] = useState("");
  const refused = apiKey() !== null;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (key.trim() === "") return;
    forgetAnswers();
    keepKey(key.trim());
  };
  return (
    <form className="key-gate" onSubmit={submit}>
      <h1>This service needs an API key</h1>
      <p>
        The key is the value of PRIORS_API_KEY, or one that <code>priors key create</code> has made. One with the scope admin also releases
        memories from quarantine. It is kept in this browser tab until you close the tab.
      </p>
      {refused && (
        <p className="problem" role="alert">
          That key was refused.
        </p>
      )}
      <label htmlFor="api-key">API key</label>
      <input id="api-key" type="password" autoComplete="off" autoFocus value={key} onChange={(event) => setKey(event.target.value)} />
      <button type="submit" className="primary">
        Continue
      </button>
    </form>
  );
}
