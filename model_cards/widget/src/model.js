/** A model's ONNX file, run by onnxruntime's WebAssembly: texts in; classes, vectors and attention out. */
import * as ort from "onnxruntime-web/wasm";
import { wholeWords } from "./tokenizer.js";

/**
 * What the model makes of a text or pair.
 * @typedef {{
 *   scores: number[] | null,       of each class, or the numbers of a regression
 *   vectors: Float32Array[],       one for each text
 *   attention: number[][][],       of each text: heads, words; no heads where the file has no attention
 *   words: {text: string, known: boolean}[][],
 * }} Reading
 */

export class Model {
  /**
   * @param {any} about What widget.json says.
   * @param {import("./tokenizer.js").Tokenizer} tokenizer
   * @param {ort.InferenceSession} session
   */
  constructor(about, tokenizer, session) {
    Object.assign(this, { about, tokenizer, session });
    this.hasAttention = session.outputNames.includes("attention");
  }

  /**
   * @param {Uint8Array} wasm onnxruntime's program.
   * @param {Uint8Array} file The ONNX file.
   */
  static async load(about, tokenizer, wasm, file) {
    ort.env.wasm.wasmBinary = wasm;
    ort.env.wasm.numThreads = 1; // a model so small is done before a second thread has begun
    ort.env.logLevel = "error";
    const session = await ort.InferenceSession.create(file, { executionProviders: ["wasm"] });
    return new Model(about, tokenizer, session);
  }

  /**
   * @param {string[]} texts Two of a model of pairs and of an encoder, one of a classifier of single texts.
   * @returns {Promise<Reading>}
   */
  async read(texts) {
    const { pairs, scores, pad, separator, longest } = this.about;
    const encoded = pairs ? [this.tokenizer.encode(...texts)] : texts.map((text) => this.tokenizer.encode(text));
    const outputs = await this.session.run(inputs(encoded, pad));
    const vectors = [outputs.pooler_output, outputs.second_pooler_output].filter(Boolean).flatMap(rows);
    const words = encoded
      .flatMap((example) => example.tokens)
      .map((tokens, index) => wholeWords(texts[index], tokens, separator, longest ?? undefined));
    const logits = outputs.logits && rows(outputs.logits)[0];
    const weights = this.hasAttention ? matrices(outputs.attention) : [];
    return {
      scores: logits ? SCORES[scores]([...logits]) : null,
      vectors,
      attention: weights.map((heads, index) => heads.map((head) => byWord(head, words[index]))),
      words: words.map((part, index) =>
        part.map(({ start, end, known }) => ({ text: texts[index].slice(start, end), known })),
      ),
    };
  }
}

/** How logits become scores, by the names of modeling_dsa/prediction/logits.py. */
const SCORES = {
  softmax(logits) {
    const largest = Math.max(...logits);
    const powers = logits.map((logit) => Math.exp(logit - largest));
    const sum = powers.reduce((one, other) => one + other);
    return powers.map((power) => power / sum);
  },
  sigmoid: (logits) => logits.map((logit) => 1 / (1 + Math.exp(-logit))),
  none: (logits) => logits,
};

/** Examples of any length as rectangles. */
function inputs(encoded, pad) {
  const longest = Math.max(1, ...encoded.map(({ ids }) => ids.length));
  const filled = (of, rest) =>
    encoded.flatMap((example) => Array.from({ length: longest }, (_, index) => of(example)[index] ?? rest));
  const tensor = (numbers) => new ort.Tensor("int64", BigInt64Array.from(numbers, BigInt), [encoded.length, longest]);
  return {
    input_ids: tensor(filled(({ ids }) => ids, pad)),
    attention_mask: tensor(filled(({ ids }) => ids.map(() => 1), 0)),
    token_type_ids: tensor(filled(({ types }) => types, 0)),
  };
}

/** (rows, width) as a list of rows. */
function rows({ data, dims }) {
  const width = dims.at(-1);
  return Array.from({ length: data.length / width }, (_, row) => data.subarray(row * width, (row + 1) * width));
}

/** (texts, heads, tokens) as a list of lists of rows. */
function matrices(tensor) {
  const [texts, heads] = tensor.dims;
  const all = rows(tensor);
  return Array.from({ length: texts }, (_, text) => all.slice(text * heads, (text + 1) * heads));
}

/** The sum of what a word's tokens have. */
const byWord = (weights, words) =>
  words.map(({ tokens }) => tokens.reduce((sum, token) => sum + weights[token], 0));

/** @returns {number} The cosine of two vectors; 0 where one of them is 0. */
export function cosine(one, other) {
  let [product, first, second] = [0, 0, 0];
  one.forEach((number, index) => {
    product += number * other[index];
    first += number ** 2;
    second += other[index] ** 2;
  });
  return first && second ? product / Math.sqrt(first * second) : 0;
}
