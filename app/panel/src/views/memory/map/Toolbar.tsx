import { Choice, Switch } from "../../../parts/Field";
import { whole } from "../../../parts/format";
import { Icon } from "../../../parts/Icon";
import { SearchField } from "../../../parts/SearchField";
import { changeAddress } from "../../../state/address";
import { Filtering } from "../FilterBar";
import { PAUSE_MILLISECONDS } from "../SearchBox";
import { type Asked, LIMITS } from "./asked";
import type { Tool } from "./MapCanvas";
import { COLOURINGS, type Colouring } from "./marks";

function toolOf(value: Tool, label: string, title: string) {
  const name = (
    <>
      <Icon name={value} />
      <span className="tool-name">{label}</span>
    </>
  );
  return { value, name, title };
}

const TOOLS = [
  toolOf("move", "Move", "Drag to move the map (v). Hold Shift and drag or click to select."),
  toolOf("rectangle", "Rectangle", "Draw a rectangle or click to select (r). Hold Shift to add to the selection."),
  toolOf("lasso", "Lasso", "Draw a lasso or click to select (l). Hold Shift to add to the selection."),
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
      <Switch
        label="Colour by"
        value={asked.colouring}
        set={(name) => changeAddress({ colour: name === "cluster" ? null : name })}
        options={COLOURINGS.map((name) => ({ value: name, name: NAMES[name], title: HINTS[name] }))}
      />
      <Switch label="Pointer tool" value={tool} set={setTool} options={TOOLS} />
      <button type="button" className="quiet redraw" disabled={busy} title="Compute a new layout: positions change" onClick={redraw}>
        <Icon name="restore" />
        Redraw
      </button>
      <Filtering />
    </div>
  );
}
