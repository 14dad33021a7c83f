/**
 * The tokenizer of a DSA model, read from its tokenizer.json: the same ids as Python's `tokenizers`, and where in the
 * text as it was typed each word stands.
 *
 * The patterns of tokenizer.json are written for Oniguruma, which `oniguruma-to-es` translates. What the package's own
 * tokenizers are made of is understood (modeling_dsa/text/word_rules.py), and anything else refused.
 */
import { toRegExp } from "oniguruma-to-es";

// Browsers that are newer could fold case by themselves; with one target all of them run what the tests compare.
const PATTERN = { target: "ES2024", global: true, avoidSubclass: true };

/**
 * A text on its way to words: for each UTF-16 unit of `text`, start and end of what it was in the text that was typed.
 * @typedef {{text: string, starts: number[], ends: number[]}} Aligned
 *
 * A word: start and end in the text that was typed, its ids, and whether all of them are known.
 * @typedef {{start: number, end: number, ids: number[], known: boolean}} Word
 */

export class Tokenizer {
  /** @param {any} saved What tokenizer.json holds. */
  constructor(saved) {
    this.vocabulary = new Map(Object.entries(saved.model.vocab));
    this.unknown = idOf(this.vocabulary, saved.model.unk_token);
    /** @type {(word: string) => number[]} */
    this.split = splitter(saved.model, this.vocabulary, this.unknown);
    this.normalizers = listed(saved.normalizer, "normalizers").map(normalizer);
    this.words = wordPattern(saved.pre_tokenizer);
    this.added = new Map(saved.added_tokens.map((token) => [token.content, token.id]));
    const longestFirst = [...this.added.keys()].sort((one, other) => other.length - one.length);
    this.special = new RegExp(longestFirst.map((token) => token.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g");
  }

  /**
   * The words of a text, special tokens that stand in it among them.
   * @param {string} text Half of a surrogate pair in it is read as U+FFFD.
   * @returns {Word[]}
   */
  read(text) {
    text = text.toWellFormed();
    const found = [];
    let end = 0;
    for (const match of this.added.size ? text.matchAll(this.special) : []) {
      found.push(...this.#plain(text, end, match.index));
      end = match.index + match[0].length;
      const id = this.added.get(match[0]);
      found.push({ start: match.index, end, ids: [id], known: id !== this.unknown });
    }
    found.push(...this.#plain(text, end, text.length));
    return found;
  }

  /**
   * The ids of a text or a pair, `A [SEP] B`, as Python's tokenizer gives them.
   * @param {string} text
   * @param {string} [pair]
   * @returns {{ids: number[], types: number[], words: Word[][]}}
   */
  encode(text, pair) {
    const words = (pair === undefined ? [text] : [text, pair]).map((part) => this.read(part));
    const [first, second] = words.map((part) => part.flatMap((word) => word.ids));
    if (second === undefined) return { ids: first, types: first.map(() => 0), words };
    const before = [...first, idOf(this.added, "[SEP]")];
    return { ids: [...before, ...second], types: [...before.map(() => 0), ...second.map(() => 1)], words };
  }

  /** The words of a part of a text that holds no special token. */
  #plain(text, start, end) {
    if (start === end) return [];
    let aligned = whole(text.slice(start, end), start);
    for (const step of this.normalizers) aligned = step(aligned);
    return [...aligned.text.matchAll(this.words)].map((match) => {
      const ids = this.split(match[0]);
      return {
        start: aligned.starts[match.index],
        end: aligned.ends[match.index + match[0].length - 1],
        ids,
        known: !ids.includes(this.unknown),
      };
    });
  }
}

const idOf = (ids, token) => {
  const id = ids.get(token);
  if (id === undefined) throw new Error(`This tokenizer.json has no token ${token}.`);
  return id;
};

const refuse = (what) => {
  throw new Error(`This page cannot read a tokenizer with ${what}: it reads those that dsa-transformers makes.`);
};

const listed = (part, name) => (part === null ? [] : part.type === "Sequence" ? part[name] : [part]);

function splitter(model, vocabulary, unknown) {
  if (model.type === "WordLevel") return (word) => [vocabulary.get(word) ?? unknown];
  if (model.type !== "WordPiece") return refuse(`the model ${model.type}`);
  const { continuing_subword_prefix: prefix, max_input_chars_per_word: longest } = model;
  return (word) => {
    const characters = [...word];
    if (characters.length > longest) return [unknown];
    const ids = [];
    for (let start = 0; start < characters.length; ) {
      let end = characters.length;
      let id;
      for (; end > start; end--) {
        id = vocabulary.get((start ? prefix : "") + characters.slice(start, end).join(""));
        if (id !== undefined) break;
      }
      if (id === undefined) return [unknown];
      ids.push(id);
      start = end;
    }
    return ids;
  };
}

function wordPattern(part) {
  if (part?.type !== "Split" || part.behavior !== "Removed" || !part.invert || !part.pattern.Regex) {
    refuse(`the pre-tokenizer ${part?.type}`);
  }
  return toRegExp(part.pattern.Regex, PATTERN);
}

/** @returns {(aligned: Aligned) => Aligned} */
function normalizer(step) {
  if (step.type === "NFC") return composed;
  if (step.type === "Lowercase") return lowered;
  if (step.type !== "Replace" || !step.pattern.Regex) return refuse(`the normalizer ${step.type}`);
  const pattern = toRegExp(step.pattern.Regex, PATTERN);
  return (aligned) => rewritten(aligned, aligned.text.matchAll(pattern), () => step.content);
}

/** @returns {Aligned} */
function whole(text, offset) {
  const aligned = { text, starts: [], ends: [] };
  let index = offset;
  for (const character of text) {
    for (let unit = 0; unit < character.length; unit++) {
      aligned.starts.push(index);
      aligned.ends.push(index + character.length);
    }
    index += character.length;
  }
  return aligned;
}

/** Put what `content` says in the place of each match. */
function rewritten(aligned, matches, content) {
  const parts = [];
  const starts = [];
  const ends = [];
  let done = 0;
  const keep = (until) => {
    parts.push(aligned.text.slice(done, until));
    for (; done < until; done++) {
      starts.push(aligned.starts[done]);
      ends.push(aligned.ends[done]);
    }
  };
  for (const match of matches) {
    const put = content(match[0]);
    if (put === match[0]) continue;
    keep(match.index);
    done += match[0].length;
    parts.push(put);
    for (let unit = 0; unit < put.length; unit++) {
      starts.push(aligned.starts[match.index]);
      ends.push(aligned.ends[done - 1]);
    }
  }
  if (!parts.length) return aligned;
  keep(aligned.text.length);
  return { text: parts.join(""), starts, ends };
}

// What NFC may compose: a character with the marks behind it, or the letters of Korean syllables.
const COMPOSED = /[\u1100-\u11FF\uAC00-\uD7A3]+\p{M}*|.\p{M}*/gsu;

/** NFC. */
function composed(aligned) {
  const text = aligned.text.normalize("NFC");
  if (text === aligned.text) return aligned;
  const found = rewritten(aligned, aligned.text.matchAll(COMPOSED), (part) => part.normalize("NFC"));
  // Where it composes something else the words still are right, and only where they stood is not known exactly.
  return found.text === text ? found : rewritten(aligned, [Object.assign([aligned.text], { index: 0 })], () => text);
}

/** Character by character, as `tokenizers` does: a whole text in JavaScript would have another sigma at a word's end. */
const lowered = (aligned) => rewritten(aligned, aligned.text.matchAll(/./gsu), (one) => one.toLowerCase());
