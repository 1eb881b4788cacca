// What the server knows and tells by no event: pushed by the socket, or asked for again, while the screen is in sight.
import { useEffect, useRef, useState } from "../vendor/preact.js";
import { Refusal } from "../call.js";
import { watch } from "../live.js";

/**
 * What the socket tells of the machines or of landing, as often as it changes; `again` asks for it now.
 * @param {"nodes" | "land"} kind
 */
export function useFed(kind) {
  const [state, setState] = useState(/** @type {{ data?: any, error?: Error }} */ ({}));
  const stop = useRef(() => {});
  const begin = () => {
    stop.current();
    stop.current = watch({ kind, name: "", after: () => 0, hear: take });
  };
  const take = (/** @type {any} */ frame) =>
    setState((before) => frame.problem ? { data: before.data, error: new Refusal(503, frame.problem) } : { data: frame });
  useEffect(() => {
    const look = () => (document.hidden ? stop.current() : begin());
    document.addEventListener("visibilitychange", look);
    look();
    return () => {
      document.removeEventListener("visibilitychange", look);
      stop.current();
    };
  }, [kind]);
  return { ...state, again: begin };
}

/**
 * What `load` answers, asked for every so many milliseconds; `again` asks now. A failed look keeps the last answer.
 * @template T @param {() => Promise<T>} load @param {number} every @param {unknown[]} [deps]
 */
export function usePolled(load, every, deps = []) {
  const [state, setState] = useState(/** @type {{ data?: T, error?: Error }} */ ({}));
  const ask = useRef(() => {});
  useEffect(() => {
    let gone = false;
    let timer = 0;
    let asking = false;
    const look = async () => {
      clearTimeout(timer);
      if (gone || asking) return;
      asking = true;
      try {
        if (!document.hidden) {
          const data = await load();
          if (!gone) setState({ data });
        }
      } catch (error) {
        if (!gone) setState((before) => ({ data: before.data, error: /** @type {Error} */ (error) }));
      }
      asking = false;
      if (!gone) timer = setTimeout(look, every);
    };
    ask.current = look;
    const wake = () => document.hidden || look();
    document.addEventListener("visibilitychange", wake);
    look();
    return () => {
      gone = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
    };
  }, deps);
  return { ...state, again: () => ask.current() };
}
