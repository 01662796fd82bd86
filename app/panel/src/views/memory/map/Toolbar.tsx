import { Choice } from "../../../parts/Field";
import { whole } from "../../../parts/format";
import { Icon, type IconName } from "../../../parts/Icon";
import { SearchField } from "../../../parts/SearchField";
import { changeAddress } from "../../../state/address";
import { Filtering } from "../FilterBar";
import { PAUSE_MILLISECONDS } from "../SearchBox";
import { type Asked, LIMITS } from "./asked";
import type { Tool } from "./MapCanvas";
import { COLOURINGS, type Colouring } from "./marks";

const TOOLS: readonly { readonly tool: Tool; readonly label: string; readonly icon: IconName; readonly hint: string }[] = [
  { tool: "move", label: "Move", icon: "move", hint: "Drag to move the map (v). Hold Shift and drag or click to select." },
  {
    tool: "rectangle",
    label: "Rectangle",
    icon: "rectangle",
    hint: "Draw a rectangle or click to select (r). Hold Shift to add to the selection.",
  },
  { tool: "lasso", label: "Lasso", icon: "lasso", hint: "Draw a lasso or click to select (l). Hold Shift to add to the selection." },
];
const NAMES: Readonly<Record<Colouring, string>> = { cluster: "Topics", quality: "Quality", score: "Score" };
const HINTS: Readonly<Record<Colouring, string>> = {
  cluster: "Colour by topic",
  quality: "Colour by ratings",
  score: "Colour by the evaluator's score",
};

interface Props {
  readonly asked: Asked;
  readonly tool: Tool;
  readonly setTool: (tool: Tool) => void;
  readonly redraw: () => void;
  readonly busy: boolean;
}

export function Toolbar({ asked, tool, setTool, redraw, busy }: Props) {
  const { limit } = asked.question;
  return (
    <div className="map-toolbar" role="group" aria-label="Map settings">
      <SearchField text={asked.text} label="Search the map" placeholder="Search the map" pause={PAUSE_MILLISECONDS} />
      <Choice
        aria-label="Number of memories"
        value={String(limit)}
        set={(count) => changeAddress({ limit: count === String(LIMITS[0]) ? null : count, cluster: null })}
        options={[...new Set([...LIMITS, limit])]
          .sort((one, other) => one - other)
          .map((count) => [String(count), `Newest ${whole(count)}`])}
      />
      <div className="switch" role="group" aria-label="Colour by">
        {COLOURINGS.map((name) => (
          <button
            key={name}
            type="button"
            title={HINTS[name]}
            aria-pressed={asked.colouring === name}
            onClick={() => changeAddress({ colour: name === "cluster" ? null : name })}
          >
            {NAMES[name]}
          </button>
        ))}
      </div>
      <div className="switch" role="group" aria-label="Pointer tool">
        {TOOLS.map((item) => (
          <button key={item.tool} type="button" aria-pressed={tool === item.tool} title={item.hint} onClick={() => setTool(item.tool)}>
            <Icon name={item.icon} />
            <span className="tool-name">{item.label}</span>
          </button>
        ))}
      </div>
      <button type="button" className="quiet redraw" disabled={busy} title="Compute a new layout: positions change" onClick={redraw}>
        <Icon name="restore" />
        Redraw
      </button>
      <Filtering />
    </div>
  );
}
