/** The page: loads the model once, and answers while one types. */
import { drawAttention, drawCosine, drawScale, drawScores, element } from "./drawing.js";
import { cacheName, keepOffline, readFile } from "./files.js";
import { Model, cosine } from "./model.js";
import { Tokenizer } from "./tokenizer.js";

const LONGEST = 2000; // characters of a text
const PAUSE = 120; // milliseconds without a key before the page answers

const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const state = new URLSearchParams(location.hash.slice(1));
let [model, newest, reading] = [null, 0, null];

/** An answer that fails, as the page's start that fails, is told where answers stand. */
function fail(error) {
  console.error(error);
  part("progress").hidden = true;
  part("answer").hidden = part("attention").hidden = true;
  part("state").classList.add("error");
  part("state").textContent = `The model cannot be run here: ${error.message}`;
}

async function start() {
  const about = await (await fetch("widget.json", { cache: "no-cache" })).json();
  const names = describe(about);
  const began = performance.now();
  model = await load(about);
  const loaded = performance.now() - began;
  await answer(about, names);
  document.documentElement.dataset.firstAnswer = String(Math.round(performance.now()));
  const size = (about.files.reduce((sum, file) => sum + (about.sizes[file] ?? 0), 0) / 1e6).toFixed(1);
  part("facts").textContent = `${size} MB in all, ready in ${(loaded / 1000).toFixed(1)} s.`;
  if (await keepOffline(about.version)) part("facts").append(" It works without a connection from now on.");
}

/** Say what the model is, and ask for its texts; returns their names. */
function describe(about) {
  document.title = `${about.name} in your browser`;
  const title = about.model_url
    ? element("a", { href: about.model_url, target: "_blank", rel: "noopener" }, about.name)
    : about.name;
  part("title").replaceChildren(title);
  part("purpose").textContent = about.purpose;
  const names = about.texts;
  part("fields").append(
    ...names.map((name, index) => {
      const field = element("textarea", { id: `text-${index}`, rows: "2", maxlength: String(LONGEST), dir: "auto" });
      field.value = state.get(`text${index}`) ?? about.examples[0]?.[index] ?? "";
      return element("label", { for: field.id }, name, field);
    }),
  );
  part("examples").hidden = !about.examples.length;
  part("examples").querySelector("ul").append(
    ...about.examples.map((texts) => {
      const button = element("button", { type: "button" }, texts.join(" · "));
      button.addEventListener("click", () => {
        fields().forEach((field, index) => (field.value = texts[index] ?? ""));
        answer(about, names).catch(fail);
      });
      return element("li", {}, button);
    }),
  );
  document.querySelector(".scale").append(...drawScale());
  let waiting;
  part("texts").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => answer(about, names).catch(fail), PAUSE);
  });
  part("texts").addEventListener("submit", (event) => event.preventDefault());
  part("heads").addEventListener("change", () => showAttention(names));
  return names;
}

/** @returns {HTMLTextAreaElement[]} */
const fields = () => [...part("fields").querySelectorAll("textarea")];

async function load(about) {
  const cache = cacheName(new URL("./", location.href).href, about.version);
  const wanted = [about.wasm, about.model, about.tokenizer];
  const total = wanted.reduce((sum, file) => sum + about.sizes[file], 0);
  let arrived = 0;
  const progress = part("progress");
  progress.hidden = false;
  const show = (bytes) => {
    arrived += bytes;
    const share = Math.min(1, arrived / total);
    progress.style.setProperty("--share", String(share));
    progress.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    part("state").textContent = `Loading the model, ${(total / 1e6).toFixed(1)} MB`;
  };
  show(0);
  const [wasm, file, saved] = await Promise.all(wanted.map((name) => readFile(name, cache, show)));
  const tokenizer = new Tokenizer(JSON.parse(new TextDecoder().decode(saved)), about.words);
  const found = await Model.load(about, tokenizer, wasm, file);
  progress.hidden = true;
  part("state").textContent = "";
  return found;
}

/** Read what stands in the fields; of several answers that are on their way the newest is shown. */
async function answer(about, names) {
  if (!model) return;
  const number = ++newest;
  const texts = fields().map((field) => field.value.toWellFormed());
  keepInAddress(texts, about);
  const empty = names.filter((_, index) => !texts[index].trim());
  const read = empty.length ? null : await model.read(texts);
  if (number !== newest) return;
  // Of characters that nobody sees, such as U+200B, no word is left.
  const missing = read ? names.filter((_, index) => !read.words[index].length) : empty;
  const found = missing.length ? null : read;
  reading = found;
  part("state").textContent = found ? "" : `Type a ${missing.map((name) => name.toLowerCase()).join(" and a ")}.`;
  part("answer").hidden = !found;
  part("attention").hidden = !found?.attention.length;
  document.documentElement.dataset.answers = String(number);
  if (!found) return;
  showAnswer(about, found);
  showAttention(names);
}

function showAnswer(about, found) {
  let said;
  if (found.scores) {
    const areShares = about.scores !== "none";
    const drawn = drawScores(about.labels, found.scores, areShares);
    part("scores").replaceChildren(drawn);
    part("answer-title").textContent = "What it says";
    said = [...drawn.children].map((row) => `${row.firstChild.textContent} ${row.lastChild.textContent}`).join(", ");
  } else {
    const near = cosine(...found.vectors);
    part("scores").replaceChildren(
      drawCosine(near),
      element("p", { class: "note" }, "The cosine of the two vectors: 1 means the same, 0 nothing in common."),
    );
    part("answer-title").textContent = "Similarity";
    said = `Similarity ${near.toFixed(2)}`;
  }
  part("said").textContent = said;
}

function showAttention(names) {
  if (!reading?.attention.length) return;
  const heads = reading.attention[0].length;
  const select = part("heads").querySelector("select");
  part("heads").hidden = heads < 2;
  if (select.options.length !== heads + 1) {
    const numbered = Array.from({ length: heads }, (_, head) => new Option(`head ${head + 1}`, String(head)));
    select.replaceChildren(new Option("all heads", "all"), ...numbered);
  }
  const head = heads < 2 ? 0 : select.value === "all" ? null : Number(select.value);
  part("sentences").replaceChildren(...drawAttention(names, reading, head));
}

/** A link to the page leads back to its texts. They stand behind the `#`, which no server is sent. */
function keepInAddress(texts, about) {
  const isFirst = texts.every((text, index) => text === about.examples[0]?.[index]);
  const kept = new URLSearchParams(texts.map((text, index) => [`text${index}`, text]));
  history.replaceState(null, "", isFirst ? location.pathname + location.search : `#${kept}`);
}

start().catch(fail);
