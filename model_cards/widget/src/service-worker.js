/** Answers without a connection: keeps every file of one version of the page, and drops those of earlier ones. */
import { cacheName } from "./files.js";

const { scope } = self.registration;
const ALL = cacheName(scope, "");
const CACHE = cacheName(scope, new URL(self.location.href).searchParams.get("version"));

async function fill() {
  const cache = await caches.open(CACHE);
  const { files } = await (await fetch("widget.json", { cache: "no-cache" })).json();
  const kept = new Set((await cache.keys()).map((request) => request.url)); // the large ones, by the page itself
  await cache.addAll(files.filter((file) => !kept.has(new URL(file, scope).href)));
  await self.skipWaiting();
}

async function dropOthers() {
  const names = (await caches.keys()).filter((name) => name.startsWith(ALL) && name !== CACHE);
  await Promise.all(names.map((name) => caches.delete(name)));
  await self.clients.claim();
}

/** What names the other files is asked for first, so that a new version is seen; those have their hash in the name. */
async function answer(request) {
  const isEntry = request.mode === "navigate" || request.url === new URL("widget.json", scope).href;
  const cache = await caches.open(CACHE);
  const kept = () => cache.match(request, { ignoreSearch: true });
  if (!isEntry) return (await kept()) ?? fetch(request);
  try {
    return await fetch(request);
  } catch (error) {
    const found = await kept();
    if (!found) throw error;
    return found;
  }
}

self.addEventListener("install", (event) => event.waitUntil(fill()));
self.addEventListener("activate", (event) => event.waitUntil(dropOthers()));
self.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(scope)) event.respondWith(answer(event.request));
});
