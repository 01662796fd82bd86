/** A file of its own, which runs while the others are still read: it asks for what the list of memories begins with. */

interface First {
  readonly url: string;
  readonly workspace: string | null;
  readonly answer: Promise<Response>;
}

declare global {
  interface Window {
    /** What was asked; the client takes the answer once. */
    first?: First | undefined;
  }
}

const { pathname, search, origin } = window.location;
const params = new URLSearchParams(search);
const workspace = params.get("workspace");
// The client names one that is none.
const isNamed = /^[\w.-]*$/.test(workspace ?? "");
const key = window.sessionStorage.getItem("priors-key");
const others = [...params.keys()].filter((name) => name !== "workspace" && name !== "memory");

if (pathname === "/memory" && isNamed && others.length === 0) {
  const url = `${origin}/api/memories?sort=created&order=desc&limit=50`;
  const headers = { ...(workspace && { "X-Workspace": workspace }), ...(key && { Authorization: `Bearer ${key}` }) };
  const answer = fetch(url, { headers });
  // Where it fails, the client says so.
  answer.catch(() => undefined);
  window.first = { url, workspace, answer };
}

export {};
