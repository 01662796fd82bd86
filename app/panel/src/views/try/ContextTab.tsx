import { Empty } from "../../parts/states";
import { useTried } from "../../state/tried";
import { readShown } from "./asked";
import { Compiled } from "./Compiled";
import { ContextForm } from "./ContextForm";

/** The whole prompt that an agent would get: its parts, and what was cut. */
export function ContextTab() {
  const params = useTried();
  const { asked, context } = readShown(params);
  return (
    <>
      <ContextForm asked={asked} />
      {context === "" ? (
        <Empty title="See the whole prompt of an agent">
          <p>
            Type what an agent is asked, or has just seen. You see the parts of its context by tokens, and what was cut to fit
            the budget. Each context is stored.
          </p>
        </Empty>
      ) : (
        <Compiled id={context} />
      )}
    </>
  );
}
