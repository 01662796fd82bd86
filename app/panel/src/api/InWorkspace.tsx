import { QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useAddress } from "../state/address";
import { ServiceContext, serviceIn } from "./client";

/** What asks the service in the workspace of the address; in another workspace it begins anew. */
export function InWorkspace({ children }: { readonly children: ReactNode }) {
  const workspace = useAddress().params.get("workspace") ?? "";
  const service = serviceIn(workspace);
  return (
    <ServiceContext key={workspace} value={service}>
      <QueryClientProvider client={service.cache}>{children}</QueryClientProvider>
    </ServiceContext>
  );
}
