/** The page's files: downloaded once, kept for visits without a connection, and unpacked. */

/** The name of the cache of one version of the page; several pages may share an origin. */
export const cacheName = (scope, version) => `dsa-widget ${new URL(scope).pathname} ${version}`;

/**
 * The bytes of a file, from the cache where it is there.
 * @param {string} url
 * @param {string} cache Name of the cache.
 * @param {(bytes: number) => void} [arrived] Told of each part that arrives.
 * @returns {Promise<Uint8Array>}
 */
export async function readFile(url, cache, arrived = () => {}) {
  const kept = await opened(cache);
  let response = await kept?.match(url);
  if (!response) {
    response = await fetch(url);
    if (!response.ok) throw new Error(`${url} cannot be loaded: the server answers ${response.status}.`);
    // A browser may have no room for it; then it is loaded again next time.
    kept?.put(url, response.clone()).catch(() => {});
  }
  const parts = [];
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    arrived(value.length);
  }
  const packed = new Blob(parts);
  const [first, second] = new Uint8Array(await packed.slice(0, 2).arrayBuffer());
  // A server that names the packing in a header has its file unpacked by the browser.
  const isPacked = url.endsWith(".gz") && first === 0x1f && second === 0x8b;
  const bytes = isPacked ? new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))) : packed;
  return new Uint8Array(await bytes.arrayBuffer());
}

/** A browser that keeps nothing for this page, in a private window for instance, has no cache. */
async function opened(name) {
  try {
    return await caches.open(name);
  } catch {
    return undefined;
  }
}

/** Let the page answer without a connection from now on; says whether it will. */
export async function keepOffline(version) {
  try {
    await navigator.serviceWorker.register(`service-worker.js?version=${version}`);
    await navigator.serviceWorker.ready;
    return true;
  } catch {
    return false;
  }
}
