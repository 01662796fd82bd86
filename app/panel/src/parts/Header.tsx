import { useRef } from "react";
import { linkTo, useAddress } from "../state/address";
import { searchMemories } from "../state/search";
import { type Theme, useTheme } from "../state/theme";
import { Link } from "./Link";
import { useShortcuts } from "../state/shortcuts";
import { Icon } from "./Icon";
import { Settings } from "./Settings";
import { ShortcutsDialog } from "./ShortcutsDialog";
import { Workspace } from "./Workspace";

const VIEWS = [
  { path: "/", name: "Memories", icon: "memories" },
  { path: "/sessions", name: "Sessions", icon: "sessions" },
  { path: "/cues", name: "Cues", icon: "cues" },
  { path: "/review", name: "Review", icon: "review" },
  { path: "/graph", name: "Graph", icon: "graph" },
  { path: "/runs", name: "Runs", icon: "runs" },
  { path: "/effect", name: "Effect", icon: "effect" },
  { path: "/recalls", name: "Recalls", icon: "recalls" },
  { path: "/ask", name: "Ask", icon: "ask" },
  { path: "/status", name: "Health", icon: "status" },
] as const;

const THEME_NAMES: Record<Theme, string> = { system: "system", light: "light", dark: "dark" };

const OWN_SEARCH = ["/", "/sessions", "/cues", "/ask", "/graph", "/runs", "/recalls"];

export function Header({ path }: { readonly path: string }) {
  // The address is read so that the links follow the workspace.
  useAddress();
  const [theme, turnTheme] = useTheme();
  const dialog = useRef<HTMLDialogElement>(null);
  const settings = useRef<HTMLDialogElement>(null);
  useShortcuts({
    "?": () => dialog.current?.showModal(),
    ...(OWN_SEARCH.includes(path) ? {} : { "/": searchMemories }),
  });
  return (
    <header className="shell">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <Link className="mark" href={linkTo("/")}>
        <img src="/icon.svg" alt="" width="18" height="18" />
        Priors
      </Link>
      <nav aria-label="Views">
        {VIEWS.map((view) => (
          <Link key={view.path} href={linkTo(view.path)} aria-current={view.path === path ? "page" : undefined}>
            <Icon name={view.icon} />
            {view.name}
          </Link>
        ))}
      </nav>
      <div className="shell-end">
        <Workspace />
        <button type="button" className="icon" onClick={() => dialog.current?.showModal()} title="Keyboard shortcuts (?)">
          <Icon name="keyboard" label="Keyboard shortcuts" />
        </button>
        <button type="button" className="icon" onClick={() => settings.current?.showModal()} title="Settings">
          <Icon name="person" label="Settings" />
        </button>
        <button type="button" className="icon" onClick={turnTheme} title={`Theme: ${THEME_NAMES[theme]}`}>
          <Icon name={theme} label={`Theme: ${THEME_NAMES[theme]}. Change the theme`} />
        </button>
      </div>
      <ShortcutsDialog dialog={dialog} path={path} />
      <Settings dialog={settings} />
    </header>
  );
}
