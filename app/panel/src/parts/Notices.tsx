import { dismiss, type Notice, notifyFailure, useNotices } from "../state/notices";
import { Icon } from "./Icon";

export function Notices() {
  const notices = useNotices();
  return (
    <div className="notices" role="status" aria-live="polite">
      {notices.map((notice) => (
        <NoticeLine key={notice.id} notice={notice} />
      ))}
    </div>
  );
}

function NoticeLine({ notice }: { readonly notice: Notice }) {
  const { undo } = notice;
  const takeBack = () => {
    dismiss(notice.id);
    undo?.().catch((error: unknown) => notifyFailure("It could not be undone", error));
  };
  return (
    <div className={`notice ${notice.tone}`}>
      <span>{notice.text}</span>
      {undo && (
        <button type="button" onClick={takeBack}>
          Undo
        </button>
      )}
      <button type="button" className="icon" onClick={() => dismiss(notice.id)}>
        <Icon name="close" label="Dismiss" />
      </button>
    </div>
  );
}
