import { useEffect } from "react";

/** The title of the page: the place, or what is open in it. */
export function useTitle(name: string): void {
  useEffect(() => {
    document.title = `${name} · Priors`;
  }, [name]);
}
