import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { listenToWindows } from "./api/shown";
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

const TRIES = 2;
const FRESH_MILLISECONDS = 10_000;

applyTheme();
keepFocus();

const client = new QueryClient({
  defaultOptions: {
    // The browser may think itself offline and still reach a service on this machine.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: FRESH_MILLISECONDS,
      retry: (failures, error) => failures < TRIES && !(error instanceof ApiError && error.status >= 400),
    },
  },
});

listenToWindows(client);

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}
