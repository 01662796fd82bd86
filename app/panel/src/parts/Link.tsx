import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { go } from "../state/address";

interface Props extends AnchorHTMLAttributes<HTMLAnchorElement> {
  readonly href: string;
  readonly replace?: boolean;
}

/** A link within the panel: without a page load, unless the reader asks for another tab. */
export function Link({ href, replace = false, onClick, ...rest }: Props) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(href, { replace, follow: true });
  };
  return <a {...rest} href={href} onClick={follow} />;
}
