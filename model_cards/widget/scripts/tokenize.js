/**
 * Token ids as the page makes them: `node scripts/tokenize.js tokenizer.json < texts.jsonl`, a JSON string or a JSON
 * pair of strings a line, gives a JSON list of ids a line.
 */
import { readFileSync } from "node:fs";
import { Tokenizer } from "../src/tokenizer.js";

const tokenizer = new Tokenizer(JSON.parse(readFileSync(process.argv[2], "utf8")));
const lines = readFileSync(0, "utf8").split("\n").filter(Boolean);
const answers = lines.map((line) => {
  const { ids, words } = tokenizer.encode(...[JSON.parse(line)].flat());
  return JSON.stringify({ ids, spans: words.map((part) => part.map(({ start, end }) => [start, end])) });
});
process.stdout.write(answers.join("\n") + "\n");
