import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App, load } from "./App";
import { serviceIn } from "./api/client";
import { listenToWindows } from "./api/copies";
import { askForMemories } from "./api/queries";
import { keepFocus } from "./state/focusKeeper";
import { applyTheme } from "./state/theme";
import { readAsked } from "./views/memory/filters";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/memories.css";
import "./styles/views.css";
import "./styles/graph.css";
import "./styles/sessions.css";
import "./styles/contexts.css";
import "./styles/desk.css";

applyTheme();
keepFocus();
listenToWindows();

function draw(): void {
  const root = document.getElementById("root");
  if (!root) return;
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}

const { pathname, search } = window.location;
const params = new URLSearchParams(search);
// Drawing takes as long as the answer: the largest list is asked for before.
if (pathname === "/memory" && !params.has("look") && !params.get("q")) {
  askForMemories(serviceIn(params.get("workspace") ?? ""), readAsked(params));
}

// React shows a stand-in for 300 ms at least: the first place comes without one.
Promise.resolve(load(pathname)).then(draw, draw);
