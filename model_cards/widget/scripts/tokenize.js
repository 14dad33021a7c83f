/**
 * Token ids as the page makes them: `node scripts/tokenize.js tokenizer.json PATTERN < texts.jsonl`, a JSON string or a
 * JSON pair of strings a line, gives a JSON object a line, of ids and of the whole words that PATTERN describes.
 */
import { readFileSync } from "node:fs";
import { Tokenizer, wholeWords } from "../src/tokenizer.js";

const [file, pattern] = process.argv.slice(2);
const tokenizer = new Tokenizer(JSON.parse(readFileSync(file, "utf8")), pattern);
const separator = tokenizer.added.get("[SEP]");
const lines = readFileSync(0, "utf8").split("\n").filter(Boolean);
const answers = lines.map((line) => {
  const texts = [JSON.parse(line)].flat();
  const { ids, tokens } = tokenizer.encode(...texts);
  const words = tokens.map((part, index) => wholeWords(texts[index], part, separator));
  const shown = words.map((part, index) =>
    part.map(({ start, end, tokens, known }) => [texts[index].slice(start, end), tokens, known]),
  );
  return JSON.stringify({ ids, words: shown });
});
process.stdout.write(answers.join("\n") + "\n");
