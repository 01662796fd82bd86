import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
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

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
