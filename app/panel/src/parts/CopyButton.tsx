import { notify, notifyFailure } from "../state/notices";

/** Copies a text to the clipboard. Without HTTPS a browser may have no clipboard for pages; then the notice says so. */
export function CopyButton({ text }: { readonly text: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      notify("Copied");
    } catch {
      notifyFailure("Nothing was copied", new Error("the browser does not give this page its clipboard; select the text instead"));
    }
  };
  return (
    <button type="button" onClick={() => void copy()}>
      Copy
    </button>
  );
}

/** A text as the agent gets it, which can be copied. */
export function Copied({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <>
      <div className="heading-line">
        <h3>{title}</h3>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} className="wrapped" dir="auto">
        {text}
      </pre>
    </>
  );
}
