/** The parts of a context as they are drawn: sections and tools by their tokens. Pure. */

import type { ContextView } from "../../api/schema";

export interface Part {
  readonly key: string;
  readonly name: string;
  readonly source: string;
  readonly tokens: number;
  readonly content: string;
  readonly facts: readonly string[];
}

export const SOURCES: readonly { readonly name: string; readonly label: string }[] = [
  { name: "given", label: "Given" },
  { name: "temporal", label: "Latest turns" },
  { name: "semantic", label: "Related" },
  { name: "knowledge", label: "Knowledge" },
  { name: "cues", label: "Cues" },
  { name: "state", label: "State" },
  { name: "observation", label: "Observation" },
  { name: "tool", label: "Tools" },
];

export function sourceLabel(source: string): string {
  return SOURCES.find(({ name }) => name === source)?.label ?? source;
}

/** The name of a part: its label without the marks of a heading. */
export function nameOf({ id, label }: { readonly id: string; readonly label: string }): string {
  return label.replace(/^#+\s+/, "") || id;
}

export function partsOf({ sections, tools }: ContextView): readonly Part[] {
  return [
    ...sections.map((section, place) => ({
      key: `section ${place}`,
      name: nameOf(section),
      source: section.source,
      tokens: section.tokens,
      content: section.content,
      facts: [
        `priority ${section.priority}`,
        section.mode,
        `worth ${section.worth.toFixed(2)}`,
        ...(section.reference ? ["reference"] : []),
      ],
    })),
    ...tools.map((tool) => ({
      key: `tool ${tool.name}`,
      name: tool.name,
      source: "tool",
      tokens: tool.tokens,
      content: JSON.stringify({ description: tool.description, schema: tool.schema }, null, 2),
      facts: [`priority ${tool.priority}`],
    })),
  ];
}

/** The whole text that the model gets. */
export function textOf({ markdown, system, messages }: ContextView): string {
  if (markdown !== null) return markdown;
  const given = system === null ? messages : [{ role: "system", content: system }, ...messages];
  return given.map(({ role, content }) => `${role}:\n${content}`).join("\n\n");
}
