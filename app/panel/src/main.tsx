import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App, load } from "./App";
import { listenToWindows } from "./api/copies";
import { keepFocus } from "./state/focusKeeper";
import { applyTheme } from "./state/theme";
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

// React shows a stand-in for 300 ms at least: the first place comes without one.
Promise.resolve(load(window.location.pathname)).then(draw, draw);
