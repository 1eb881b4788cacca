/** Throw unless both are equal as JSON. @param {unknown} actual @param {unknown} expected */
export function same(actual, expected) {
  const [one, other] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (one !== other) throw new Error(`${one} is not ${other}`);
}
