/** Answers as elements of the page. Whatever is shown as a shade or a bar stands there as a number too. */

const STRONGEST = 8; // the darkest of the shades in style.css

/**
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

function track(name, share) {
  const bar = element("i");
  bar.style.setProperty("--share", String(Math.min(1, Math.max(0, share))));
  return element(name, { class: "track", "aria-hidden": "true" }, bar);
}

/** The classes, the likeliest first, with their probabilities; the numbers of a regression as they are. */
export function drawScores(labels, scores, areShares) {
  const order = scores.map((_, index) => index).sort((one, other) => scores[other] - scores[one]);
  const rows = order.map((index, place) => {
    const value = areShares ? percent(scores[index]) : scores[index].toPrecision(3);
    const parts = [element("dt", {}, element("bdi", {}, labels[index]))];
    if (areShares) parts.push(track("dd", scores[index]));
    parts.push(element("dd", {}, value));
    const row = element("div", { "data-label": labels[index], "data-score": String(scores[index]) }, ...parts);
    if (!place) row.classList.add("best");
    return row;
  });
  return element("dl", { class: areShares ? "scores" : "scores numbers" }, ...rows);
}

/** How near two texts are. */
export function drawCosine(value) {
  const shown = value.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", "−");
  const number = element("output", { "data-cosine": String(value) }, shown);
  return element("div", { class: "cosine" }, number, track("div", value));
}

/** The words of each text, shaded by the attention of one head, or of all together. */
export function drawAttention(names, reading, head) {
  const largest = Math.max(...reading.attention.flat(2), 1e-9);
  return names.map((name, index) => {
    const heads = reading.attention[index];
    const shown = head === null ? mean(heads) : heads[head];
    const words = reading.words[index].map(({ text, known }, word) => drawWord(text, shown[word], largest, known));
    // The words are isolated from each other, so that `dir=auto` would not see them.
    const direction = /^[^\p{L}]*[\p{sc=Hebrew}\p{sc=Arabic}]/u.test(reading.words[index].map(({ text }) => text).join(" "));
    const label = `${name}: its words and how much attention each gets`;
    const list = element("ol", { dir: direction ? "rtl" : "ltr", role: "list", "aria-label": label }, ...words);
    return element("div", {}, element("h3", {}, name), list);
  });
}

function drawWord(text, weight, largest, known) {
  const title = `${text}: ${percent(weight)}${known ? "" : ", not in the vocabulary"}`;
  const shade = `shade-${Math.round((weight / largest) * STRONGEST)}${known ? "" : " unknown"}`;
  const number = element("span", { class: "weight" }, `${percent(weight)}${known ? "" : "*"}`);
  return element("li", { class: shade, title, "data-weight": String(weight) }, element("bdi", {}, text), number);
}

export const drawScale = () => Array.from({ length: STRONGEST + 1 }, (_, step) => element("i", { class: `shade-${step}` }));

/** All heads together: the mean of their weights. */
const mean = (heads) => heads[0].map((_, word) => heads.reduce((sum, head) => sum + head[word], 0) / heads.length);
