/**
 * Build the page into dist: `npm run build`. A model's files come beside it when `dsa widget` writes a Space.
 *
 * bundle.json names the files, and which of them is onnxruntime's program. What has a hash in its name never changes.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const out = join(root, "dist");
const require = createRequire(import.meta.url);

const options = { bundle: true, minify: true, target: "es2022", legalComments: "eof", metafile: true };

await rm(out, { recursive: true, force: true });
await mkdir(out);
const hashed = await build({
  ...options,
  entryPoints: { app: join(root, "src/app.js"), style: join(root, "src/style.css") },
  entryNames: "[name]-[hash]",
  format: "esm",
  outdir: out,
  external: ["module", "worker_threads", "node:*"], // onnxruntime asks for them under Node.js alone
});
await build({ ...options, entryPoints: [join(root, "src/service-worker.js")], format: "iife", outdir: out });

// Packed here, as not every server packs what it sends: 3.7 MB instead of 14.2.
const program = await readFile(require.resolve("onnxruntime-web/ort-wasm-simd-threaded.wasm"));
const wasm = `onnxruntime-${createHash("sha256").update(program).digest("hex").slice(0, 8)}.wasm.gz`;
await writeFile(join(out, wasm), gzipSync(program, { level: 9 }));

const names = await readdir(out);
const named = (start) => names.find((name) => name.startsWith(start));
const page = await readFile(join(root, "src/index.html"), "utf8");
await writeFile(
  join(out, "index.html"),
  page.replace("%APP%", named("app-")).replace("%STYLE%", named("style-")),
);
await writeFile(join(out, "LICENSES.txt"), await licences(Object.keys(hashed.metafile.inputs)));
const files = ["index.html", named("app-"), named("style-"), wasm, "LICENSES.txt"];
await writeFile(join(out, "bundle.json"), `${JSON.stringify({ files, wasm, worker: "service-worker.js" })}\n`);

/** What each package that is part of the page says of itself. */
async function licences(inputs) {
  const folders = new Set(inputs.map((path) => /.*node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0]).filter(Boolean));
  const texts = [];
  for (const folder of [...folders].sort()) {
    const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? await readFile(join(folder, file), "utf8") : `Licence: ${license}\n`;
    texts.push(`${name} ${version}\n\n${text.trim()}\n`);
  }
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}
