/** Line icons on a grid of 16, drawn for the panel. */

const PATHS = {
  memories: "M3 3.5h10M3 8h10M3 12.5h6",
  review: "M2.5 8.5l3 3 8-8",
  rectangle: "M2.5 4v-.5h2M7 3.5h2M11.5 3.5h2V4M13.5 6.5v3M13.5 12v.5h-2M9 12.5H7M4.5 12.5h-2V12M2.5 9.5v-3",
  plus: "M8 3.5v9M3.5 8h9",
  minus: "M3.5 8h9",
  whole: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  runs: "M2.5 13.5v-4M6.2 13.5V6M9.8 13.5V8M13.5 13.5v-11",
  person: "M8 2.8a2.4 2.4 0 1 0 0 4.8 2.4 2.4 0 0 0 0-4.8zM3.2 13.2c.5-2.6 2.4-3.9 4.8-3.9s4.3 1.3 4.8 3.9",
  ask: "M3 3.5h10v7H7.5L4.5 13v-2.5H3z",
  status: "M1.5 8.5h3l2-5 3 9 2-4h3",
  keyboard: "M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.5h6",
  system: "M2.5 3.5h11v7h-11zM6 13h4",
  light:
    "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  dark: "M13 9.6A5.5 5.5 0 0 1 6.4 3a5.5 5.5 0 1 0 6.6 6.6z",
  up: "M5 7.5l2.5-5a1.4 1.4 0 0 1 1.6 1.4V6.5h3a1.2 1.2 0 0 1 1.2 1.4l-.7 4.2a1.2 1.2 0 0 1-1.2 1H5zM5 7.5v5.6H2.7V7.5z",
  down: "M11 8.5l-2.5 5a1.4 1.4 0 0 1-1.6-1.4V9.5h-3a1.2 1.2 0 0 1-1.2-1.4l.7-4.2a1.2 1.2 0 0 1 1.2-1H11zM11 8.5V2.9h2.3v5.6z",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.4 10.4l3.1 3.1",
  filter: "M2 4h12M4.5 8h7M6.5 12h3",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4",
  restore: "M3 8a5 5 0 1 0 1.6-3.7M3 2.5v3h3",
  back: "M10 3L5 8l5 5",
  flag: "M4 14V2.5h8.5L10.5 6l2 3.5H4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, label }: { readonly name: IconName; readonly label?: string }) {
  const naming = label ? { role: "img", "aria-label": label } : { "aria-hidden": true };
  return (
    <svg className="glyph" viewBox="0 0 16 16" width="16" height="16" {...naming}>
      <path d={PATHS[name]} />
    </svg>
  );
}
