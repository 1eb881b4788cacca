// The types of what we use of vendor/preact.js. Templates are not checked: htm reads them as text.
export type Signal<T> = { value: T; peek(): T };
export function signal<T>(value: T): Signal<T>;
export function computed<T>(of: () => T): { readonly value: T; peek(): T };
export function effect(run: () => void | (() => void)): () => void;
export function batch<T>(run: () => T): T;
export function useSignal<T>(value: T): Signal<T>;
export function useComputed<T>(of: () => T): { readonly value: T };
export function useState<T>(value: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export function useRef<T>(value: T): { current: T };
export function useMemo<T>(of: () => T, deps: unknown[]): T;
export function useCallback<T>(of: T, deps: unknown[]): T;
export function useEffect(run: () => void | (() => void), deps?: unknown[]): void;
export function useLayoutEffect(run: () => void | (() => void), deps?: unknown[]): void;
// deno-lint-ignore no-explicit-any -- whatever a template makes
export function html(strings: TemplateStringsArray, ...values: any[]): any;
// deno-lint-ignore no-explicit-any -- of any component
export const h: any, Fragment: any, createContext: any, options: any;
export function render(what: unknown, where: Element): void;
