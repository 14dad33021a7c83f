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
 * A token: start and end in the text that was typed, its id, whether it is known, and the number of its whole word.
 * @typedef {{start: number, end: number, id: number, known: boolean, word: number}} Token
 *
 * A word: start and end in the text that was typed, whether all of it is known, and which tokens make it up.
 * @typedef {{start: number, end: number, known: boolean, tokens: number[]}} Word
 */

export class Tokenizer {
  /**
   * @param {any} saved What tokenizer.json holds.
   * @param {string} wholeWord The pattern of a whole word, however a tokenizer may cut it (word_rules.py).
   */
  constructor(saved, wholeWord) {
    this.vocabulary = new Map(Object.entries(saved.model.vocab));
    this.unknown = idOf(this.vocabulary, saved.model.unk_token);
    /** @type {(word: string) => {id: number, start: number, end: number}[]} */
    this.split = splitter(saved.model, this.vocabulary, this.unknown);
    this.normalizers = listed(saved.normalizer, "normalizers").map(normalizer);
    this.words = wordPattern(saved.pre_tokenizer);
    this.wholeWords = toRegExp(wholeWord, PATTERN);
    this.added = new Map(saved.added_tokens.map((token) => [token.content, token.id]));
    const longestFirst = [...this.added.keys()].sort((one, other) => other.length - one.length);
    this.special = new RegExp(longestFirst.map((token) => token.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g");
  }

  /**
   * The tokens of a text, special ones that stand in it among them.
   * @param {string} text Half of a surrogate pair in it is read as U+FFFD.
   * @returns {Token[]}
   */
  read(text) {
    text = text.toWellFormed();
    const found = [];
    let end = 0;
    for (const match of this.added.size ? text.matchAll(this.special) : []) {
      found.push(...this.#plain(text, end, match.index));
      end = match.index + match[0].length;
      found.push(this.#token(match.index, end, this.added.get(match[0])));
    }
    found.push(...this.#plain(text, end, text.length));
    const { text: normal, starts } = this.#normalized(text, 0);
    const begin = [...normal.matchAll(this.wholeWords)].map((match) => starts[match.index]);
    let word = 0;
    for (const token of found) {
      while (begin[word] <= token.start) word++;
      token.word = word;
    }
    return found;
  }

  /**
   * The ids of a text or a pair, `A [SEP] B`, as Python's tokenizer gives them.
   * @param {string} text
   * @param {string} [pair]
   * @returns {{ids: number[], types: number[], tokens: Token[][]}}
   */
  encode(text, pair) {
    const tokens = (pair === undefined ? [text] : [text, pair]).map((part) => this.read(part));
    const [first, second] = tokens.map((part) => part.map(({ id }) => id));
    if (second === undefined) return { ids: first, types: first.map(() => 0), tokens };
    const before = [...first, idOf(this.added, "[SEP]")];
    return { ids: [...before, ...second], types: [...before.map(() => 0), ...second.map(() => 1)], tokens };
  }

  /** The tokens of a part of a text that holds no special token. */
  #plain(text, start, end) {
    if (start === end) return [];
    const { text: normal, starts, ends } = this.#normalized(text.slice(start, end), start);
    return [...normal.matchAll(this.words)].flatMap((match) =>
      this.split(match[0]).map((piece) =>
        this.#token(starts[match.index + piece.start], ends[match.index + piece.end - 1], piece.id),
      ),
    );
  }

  /** @returns {Aligned} */
  #normalized(text, offset) {
    return this.normalizers.reduce((aligned, step) => step(aligned), whole(text, offset));
  }

  #token(start, end, id) {
    // A [PAD] that is typed is a token without a vector.
    return { start, end, id, known: id !== this.unknown && id !== this.added.get("[PAD]"), word: 0 };
  }
}

// What stands behind a letter as a part of it: marks, variation selectors, the vowels and finals of Korean syllables.
const JOINED = /[\p{M}\u1160-\u11FF]/uy;

/**
 * The whole words of a text that a model reads, as Python's explanation has them.
 * @param {string} text As it was typed.
 * @param {Token[]} tokens Of the text.
 * @param {number} separator Its id; a separator belongs to no word.
 * @param {number} [longest] How many tokens the model reads at most.
 * @returns {Word[]}
 */
export function wholeWords(text, tokens, separator, longest = Infinity) {
  const own = tokens.filter(({ id }) => id !== separator);
  const starts = new Set(own.map(({ start }) => start));
  const found = [];
  for (const [index, { start, end, known, word }] of own.slice(0, longest).entries()) {
    if (word !== found.at(-1)?.word) found.push({ start, end, known: true, tokens: [], word });
    const last = found.at(-1);
    last.end = end;
    last.known &&= known;
    last.tokens.push(index);
  }
  for (const word of found) {
    for (JOINED.lastIndex = word.end; !starts.has(word.end) && JOINED.test(text); ) word.end = JOINED.lastIndex;
  }
  return found;
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
  const single = (word, id) => [{ id, start: 0, end: word.length }];
  if (model.type === "WordLevel") return (word) => single(word, vocabulary.get(word) ?? unknown);
  if (model.type !== "WordPiece") return refuse(`the model ${model.type}`);
  const { continuing_subword_prefix: prefix, max_input_chars_per_word: longest } = model;
  return (word) => {
    const characters = [...word];
    if (characters.length > longest) return single(word, unknown);
    const pieces = [];
    let units = 0; // of UTF-16 before the piece
    for (let start = 0; start < characters.length; ) {
      let end = characters.length;
      let id, piece;
      for (; end > start; end--) {
        piece = characters.slice(start, end).join("");
        id = vocabulary.get((start ? prefix : "") + piece);
        if (id !== undefined) break;
      }
      if (id === undefined) return single(word, unknown);
      pieces.push({ id, start: units, end: (units += piece.length) });
      start = end;
    }
    return pieces;
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
