#!/usr/bin/env node
// Opens pages in headless Chromium and checks what a reader would meet:
//
//   BUGPACK_SCHEMA_NODE_MODULES=DIR/node_modules check_page.mjs PAGE...
//
// No console message, no request but for the page, no element, attribute or address that `bugpack html`
// does not write, nothing wider than the window, and no violation that axe-core finds, light and dark,
// wide and narrow. Prints a line for each failure. Exits 0 when there is none.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const modules = process.env.BUGPACK_SCHEMA_NODE_MODULES;
const browser = 'chromium';
const axe = readFileSync(join(modules, 'axe-core', 'axe.min.js'), 'utf8');
const profile = mkdtempSync(join(tmpdir(), 'bugpack-page-'));
const chromium = spawn(browser, ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe',
  '--disable-dev-shm-usage', `--user-data-dir=${profile}`, 'about:blank'],
{ stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

// The protocol of the developer tools: JSON texts that end in a NUL.
let nextId = 1, received = '';
const waiting = new Map(), listeners = new Set();
chromium.stdio[4].on('data', (piece) => {
  received += piece;
  for (let end; (end = received.indexOf('\0')) >= 0; received = received.slice(end + 1)) {
    const message = JSON.parse(received.slice(0, end));
    if (message.id) {
      waiting.get(message.id)(message);
      waiting.delete(message.id);
    } else {
      listeners.forEach((listener) => listener(message));
    }
  }
});
const ask = (method, params = {}, sessionId = undefined) => new Promise((done, fail) => {
  waiting.set(nextId, (answer) => (answer.error ? fail(new Error(answer.error.message)) : done(answer.result)));
  chromium.stdio[3].write(`${JSON.stringify({ id: nextId++, method, params, sessionId })}\0`);
});

// What the page writer writes, and nothing else.
const inspect = `(() => {
  const tags = new Set(('html head meta title style body header main section h1 h2 dl dt dd ul li p span table ' +
    'thead tbody tr th td figure figcaption svg polyline path text rect details summary pre div a img ' +
    'ol code br h3').split(' '));
  const attributes = new Set(('lang charset http-equiv content name class id href src alt scope role tabindex ' +
    'aria-label aria-labelledby aria-hidden viewBox preserveAspectRatio d x y width height points').split(' '));
  const found = [];
  for (const element of document.querySelectorAll('*')) {
    if (!tags.has(element.localName)) found.push('element ' + element.localName);
    for (const { name, value } of element.attributes) {
      if (!attributes.has(name)) found.push('attribute ' + name);
      if (name === 'href' && !/^#(log|stack)-[0-9]+$/.test(value)) found.push('address ' + value);
      if (name === 'src' && !/^data:image\\/png;base64,[A-Za-z0-9+/=]*$/.test(value)) found.push('address ' + value.slice(0, 40));
    }
  }
  if (document.documentElement.scrollWidth > window.innerWidth) found.push('wider than the window');
  return found;
})()`;

async function check(page, scheme, width) {
  const failures = [];
  const { targetId } = await ask('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await ask('Target.attachToTarget', { targetId, flatten: true });
  const send = (method, params) => ask(method, params, sessionId);
  const address = pathToFileURL(resolve(page)).href;
  let isLoaded;
  const loaded = new Promise((done) => { isLoaded = done; });
  const listener = ({ method, params, sessionId: from }) => {
    if (from !== sessionId) return;
    if (method === 'Page.loadEventFired') isLoaded();
    if (method === 'Runtime.consoleAPICalled' || method === 'Runtime.exceptionThrown') failures.push('console message');
    if (method === 'Log.entryAdded') failures.push(`console: ${params.entry.text}`);
    if (method === 'Network.requestWillBeSent' && params.request.url !== address &&
      !params.request.url.startsWith('data:image/png')) failures.push(`request for ${params.request.url}`);
  };
  listeners.add(listener);
  for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await send(`${domain}.enable`);
  await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
  await send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false });
  await send('Page.navigate', { url: address });
  await loaded;
  const evaluate = async (expression) =>
    (await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })).result.value;
  failures.push(...await evaluate(inspect));
  await evaluate(`${axe}; 0`);
  failures.push(...await evaluate('axe.run().then((r) => r.violations.map((v) => "axe: " + v.id + ": " + v.nodes[0].html.slice(0, 120)))'));
  listeners.delete(listener);
  await ask('Target.closeTarget', { targetId });
  return failures.map((failure) => `${page}, ${scheme}, ${width} pixels: ${failure}`);
}

const failures = [];
for (const page of process.argv.slice(2)) {
  for (const [scheme, width] of [['light', 1200], ['dark', 1200], ['light', 400]]) {
    failures.push(...await check(page, scheme, width));
  }
}
await ask('Browser.close');
await new Promise((done) => { chromium.once('exit', done); });
rmSync(profile, { recursive: true, force: true });
failures.forEach((failure) => console.log(failure));
process.exit(failures.length > 0 ? 1 : 0);
