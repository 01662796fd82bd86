import { useEffect, useRef } from "react";
import { dismiss, type Notice, takeBack, useNotices } from "../state/notices";
import { useShortcuts } from "../state/shortcuts";
import { Icon } from "./Icon";

const SECONDS_SHOWN = 8;

export function Notices() {
  const notices = useNotices();
  useShortcuts({ z: () => takeBack() });
  return (
    <div className="notices" role="status" aria-live="polite">
      {notices.map((notice) => (
        <NoticeLine key={notice.id} notice={notice} />
      ))}
    </div>
  );
}

function NoticeLine({ notice }: { readonly notice: Notice }) {
  const line = useExpiry(notice);
  return (
    <div ref={line} className={`notice ${notice.tone}`}>
      <span>{notice.text}</span>
      {notice.undo && (
        <button type="button" title="Undo (z)" onClick={() => takeBack(notice)}>
          Undo
        </button>
      )}
      <button type="button" className="icon" onClick={() => dismiss(notice.id)}>
        <Icon name="close" label="Dismiss" />
      </button>
    </div>
  );
}

/** A notice goes by itself, but not while somebody is at one, and a failure only when it is dismissed. */
function useExpiry({ id, tone }: Notice) {
  const line = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (tone === "bad") return undefined;
    let left = SECONDS_SHOWN;
    const timer = window.setInterval(() => {
      left = line.current?.parentElement?.matches(":hover, :focus-within") ? SECONDS_SHOWN : left - 1;
      if (left === 0) dismiss(id);
    }, 1000);
    return () => window.clearInterval(timer);
  }, [id, tone]);
  return line;
}
