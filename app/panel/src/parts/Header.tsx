import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { tinykeys } from "tinykeys";
import { InWorkspace } from "../api/InWorkspace";
import { go, linkTo, useAddress } from "../state/address";
import { CHORDS, PLACES } from "../state/places";
import { searchHere } from "../state/search";
import { isTypedInto, useShortcuts } from "../state/shortcuts";
import { turnTheme, useTheme } from "../state/theme";
import { Icon } from "./Icon";
import { Link } from "./Link";
import { Settings } from "./Settings";
import { ShortcutsDialog } from "./ShortcutsDialog";
import { Workspace } from "./Workspace";

const Try = lazy(() => import("../views/try/Try").then((loaded) => ({ default: loaded.Try })));

export function Header({ path }: { readonly path: string }) {
  // The address is read so that the links follow the workspace.
  useAddress();
  const theme = useTheme();
  const dialog = useRef<HTMLDialogElement>(null);
  const settings = useRef<HTMLDialogElement>(null);
  const [trying, setTrying] = useState(false);
  useChords();
  useShortcuts({ "?": () => dialog.current?.showModal(), t: () => setTrying(true), "/": searchHere });
  return (
    <header className="shell">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <Link className="mark" href={linkTo("/")}>
        <img src="/icon.svg" alt="" width="18" height="18" />
        Priors
      </Link>
      <nav aria-label="Places">
        {PLACES.map((place) => (
          <Link
            key={place.path}
            href={linkTo(place.path)}
            aria-current={place.path === path ? "page" : undefined}
            title={`${place.name} (g ${place.key})`}
          >
            <Icon name={place.icon} />
            {place.name}
          </Link>
        ))}
      </nav>
      <div className="shell-end">
        <button type="button" className="quiet" onClick={() => setTrying(true)} title="Try what an agent would get (t)">
          <Icon name="ask" />
          Try
        </button>
        <Workspace />
        <button type="button" className="icon" onClick={() => dialog.current?.showModal()} title="Keyboard shortcuts (?)">
          <Icon name="keyboard" label="Keyboard shortcuts" />
        </button>
        <button type="button" className="icon" onClick={() => settings.current?.showModal()} title="Settings">
          <Icon name="person" label="Settings" />
        </button>
        <button type="button" className="icon" onClick={turnTheme} title={`Theme: ${theme}`}>
          <Icon name={theme} label={`Theme: ${theme}. Change the theme`} />
        </button>
      </div>
      <ShortcutsDialog dialog={dialog} path={path} />
      <Settings dialog={settings} />
      {trying && (
        <InWorkspace>
          <Suspense fallback={null}>
            <Try onClose={() => setTrying(false)} />
          </Suspense>
        </InWorkspace>
      )}
    </header>
  );
}

/** `g` and a letter lead to a place; the letter does nothing else then. */
function useChords(): void {
  useEffect(() => {
    const chords = CHORDS.map(({ path, key, params }) => [
      `g ${key}`,
      (event: KeyboardEvent) => {
        if (isTypedInto(event.target) || document.querySelector("dialog[open]")) return;
        event.preventDefault();
        event.stopPropagation();
        go(linkTo(path, params), { follow: true });
      },
    ]);
    return tinykeys(window, Object.fromEntries(chords), { capture: true });
  }, []);
}
