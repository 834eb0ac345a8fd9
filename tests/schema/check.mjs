// Tests that what bugpack prints follows the schemas, and that the validator bites.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { checkReport, loadValidators } from './validate.mjs';

const validate = fileURLToPath(new URL('validate.mjs', import.meta.url));
const schemas = fileURLToPath(new URL('../../docs/schema/', import.meta.url));
const validators = loadValidators(process.env.BUGPACK_SCHEMA_NODE_MODULES);
const directory = mkdtempSync(join(tmpdir(), 'bugpack-schema.'));
after(() => rmSync(directory, { recursive: true, force: true }));
execFileSync(process.argv[2], [directory], { stdio: 'inherit' });

// A copy of the full report in which one artefact is changed.
let copies = 0;
function changed(name, change) {
  const copy = join(directory, `changed-${++copies}`);
  cpSync(join(directory, 'full'), copy, { recursive: true });
  change(join(copy, name));
  return copy;
}
function changedText(name, change) {
  return changed(name, (path) => writeFileSync(path, change(readFileSync(path, 'utf8'))));
}
function changedDocument(name, change) {
  return changedText(name, (text) => {
    const document = JSON.parse(text);
    change(document);
    return JSON.stringify(document);
  });
}
function assertFailure(report, expected) {
  const failures = checkReport(report, validators);
  assert.ok(failures.some((failure) => failure.includes(expected)),
    `"${expected}" is not in ${JSON.stringify(failures)}`);
}

for (const name of ['full', 'bare', 'unavailable']) {
  test(`accepts the ${name} report`, () => {
    assert.deepEqual(checkReport(join(directory, name), validators), []);
  });
}

test('accepts keys that a later version adds', () => {
  for (const name of ['metadata.json', 'runtime-metrics.json', 'process.json', 'manifest.json',
    'notifications.json', 'disconnect-cause.json', 'heap-state.json', 'thread-heap.json', 'hang.json',
    'threads.json', 'files.json', 'system.json', 'crash.json']) {
    const report = changedDocument(name, (document) => { document.added_later = { x: 1 }; });
    assert.deepEqual(checkReport(report, validators), []);
  }
});

const summaryName = 'viewer-pedantic-summary-2026-11-21T00-36-51Z-2.json';
const broken = [
  ['host-threads.json', (d) => { delete d.summary.unread; }, '/summary must have required'],
  ['host-threads.json', (d) => { d.threads[0].tid = 0; }, '/threads/0/tid must be >= 1'],
  ['host-threads.json', (d) => { delete d.threads[0].io; }, '/threads/0 must have'],
  ['host-threads.json', (d) => { d.summary.errors[0].errno = 0; }, '/summary/errors/0/errno must'],
  ['host-threads.json', (d) => { d.threads[0].scheduling.affinity = 'all'; },
    '/threads/0/scheduling/affinity must match'],
  ['host-threads.json', (d) => { d.summary.unread[0].cause = 'mood'; }, '/summary/unread/0/cause'],
  ['metadata.json', (d) => { delete d.report_id; }, "/ must have required property 'report_id'"],
  ['metadata.json', (d) => { d.report_id = 'short'; }, '/report_id must match'],
  ['metadata.json', (d) => { d.schema = 1; }, '/schema must be equal to constant'],
  ['metadata.json', (d) => { d.report_type = 'panic'; }, '/report_type must be equal to one of'],
  ['metadata.json', (d) => { delete d.gap_key; }, "/ must have required property 'gap_key'"],
  ['metadata.json', (d) => { d.timestamp = '2026-11-21T00:36:51+01:00'; }, '/timestamp must match'],
  ['runtime-metrics.json', (d) => { d.process.cpu_percent = -0.01; }, '/process/cpu_percent must'],
  ['runtime-metrics.json', (d) => { delete d.threads[1].name; }, '/threads/1 must have required'],
  ['runtime-metrics.json', (d) => { delete d.platform; }, "/ must have required property 'platform'"],
  ['runtime-metrics.json', (d) => { d.available = false; }, '/available'],
  ['crash.json', (d) => { d.name = 'TERM'; }, '/name must match pattern'],
  ['crash.json', (d) => { delete d.exception.type; }, '/exception must have required'],
  ['crash.json', (d) => { delete d.thread.tid; }, '/thread must have required'],
  ['crash.json', (d) => { d.stack.copied_bytes = 262145; }, '/stack/copied_bytes must be <='],
  ['process.json', (d) => { d.pid = 0; }, '/pid must be >= 1'],
  ['stacks.json', (d) => { d.threads[0].state = 'sleeping'; }, '/threads/0/state must be'],
  ['stacks.json', (d) => { d.threads[2].stopped_us = 5; }, '/threads/2/stopped_us boolean'],
  ['stacks.json', (d) => { d.threads[2].frames = []; }, '/threads/2/frames boolean schema is false'],
  ['process.json', (d) => { d.limits[0].soft = 'unlimited'; }, '/limits/0/soft must be'],
  ['hang.json', (d) => { delete d.thread.tid; }, "/thread must have required property 'tid'"],
  ['disconnect-cause.json', (d) => { d.channel = ''; }, '/channel must NOT have fewer'],
  ['disconnect-cause.json', (d) => { delete d.channels; }, "/ must have required property 'channels'"],
  ['disconnect-cause.json', (d) => { delete d.channels[0].sent.idle_ms; }, '/channels/0/sent must have'],
  ['heap-state.json', (d) => { d.allocated_bytes = -1; }, '/allocated_bytes must be >= 0'],
  ['heap-state.json', (d) => { delete d.allocator; }, "/ must have required property 'allocator'"],
  ['notifications.json', (d) => { d.notifications[0].level = 'loud'; }, '/notifications/0/level'],
  ['notifications.json', (d) => { delete d.notifications[1].first; }, '/notifications/1 must have'],
  ['notifications.json', (d) => { delete d.dropped; }, "/ must have required property 'dropped'"],
  [summaryName, (d) => { d.gaps[1].written = true; }, '/gaps/1/reason boolean schema is false'],
  [summaryName, (d) => { delete d.gaps[1].reason; }, '/gaps/1 must have required'],
  ['threads.json', (d) => { delete d.deadlocks; }, "/ must have required property 'deadlocks'"],
  ['threads.json', (d) => { d.threads[1].waits_for.kind = 'hope'; },
    '/threads/1/waits_for/kind must be equal'],
  ['threads.json', (d) => { delete d.threads[11].waits_for.source; },
    "/threads/11/waits_for must have required property 'source'"],
  ['threads.json', (d) => { delete d.threads[1].waits_for.tid; },
    "/threads/1/waits_for must have required property 'tid'"],
  ['threads.json', (d) => { d.threads[3].waits_for.other_end[0].pid = 0; },
    '/threads/3/waits_for/other_end/0/pid must be >= 1'],
  ['threads.json', (d) => { d.descendants[0].pid = 0; }, '/descendants/0/pid must be >= 1'],
  ['files.json', (d) => { d.files[0].kind = 'hope'; }, '/files/0/kind must be equal'],
  ['files.json', (d) => { delete d.open; }, "/ must have required property 'open'"],
  ['files.json', (d) => { d.files[3].other_end[0].pid = 0; },
    '/files/3/other_end/0/pid must be >= 1'],
  ['system.json', (d) => { delete d.kernel; }, "/ must have required property 'kernel'"],
  ['system.json', (d) => { d.filesystems[0].of = ['/tmp']; }, '/filesystems/0/of/0 must be equal'],
  ['thread-heap.json', (d) => { d.pid = 0; }, '/pid must be >= 1'],
  ['thread-heap.json', (d) => { d.measured = false; }, "/ must have required property 'failure'"],
  ['thread-heap.json', (d) => { d.failure = 'self'; }, '/failure boolean schema is false'],
  ['thread-heap.json', (d) => { delete d.jemalloc; }, "/ must have required property 'jemalloc'"],
  ['thread-heap.json', (d) => { d.snapshots[0].threads[1].failure = 'x'; },
    '/snapshots/0/threads/1/failure must be equal'],
  ['manifest.json', (d) => { d.complete = true; }, '/ must match exactly one schema'],
  ['manifest.json', (d) => { delete d.artefacts[0].bytes; }, '/artefacts/0 must have required'],
  ['manifest.json', (d) => { d.report_id = '0'.repeat(32); }, '/report_id is not that of'],
];
for (const [name, change, expected] of broken) {
  test(`refuses ${name} where ${expected}`, () => {
    assertFailure(changedDocument(name, change), `${name}: ${expected}`);
  });
}

test('refuses a line of the log and says which', () => {
  assertFailure(changedText('logs.jsonl', (text) => text.replace('"trace"', '"loud"')),
    'logs.jsonl:2: /level must be equal to one of');
  assertFailure(changedText('logs.jsonl', (text) => text.replace('\n', '')),
    'logs.jsonl:1: is not JSON');
  assertFailure(changedText('logs.jsonl', (text) => text.trimEnd()),
    'logs.jsonl: does not end with a newline');
  assertFailure(changedText('logs.jsonl', (text) => `${text}\n`), 'logs.jsonl:3: is not JSON');
});

const brokenLines = [
  ['metrics-history.jsonl', /"cpu_percent":[\d.]+/, '"cpu_percent":null', '/cpu_percent must be number'],
  ['metrics-history.jsonl', /"rss_kb":\d+,/, '', '/ must have property rss_kb when'],
  ['metrics-history.jsonl', /"time":"[^"]*"/, '"time":"now"', '/time must match format'],
  ['metrics-history.jsonl', /("tid":.*?"cpu_percent":)[\d.]+/, '$10', '/threads/0/cpu_percent must be > 0'],
  ['metrics-history.jsonl', /"threads":\[(.*?\})/, '"threads":[$1,$1,$1,$1,$1,$1,$1,$1',
    '/threads must NOT have more'],
  ['traffic-index.jsonl', /"direction":"\w+"/, '"direction":"up"', '/direction must be equal to one of'],
  ['traffic-index.jsonl', /"cut_by":\["\w+"/, '"cut_by":["mood"', '/cut_by/0 must be equal to one of'],
  ['traffic-index.jsonl', /"pinned":true/, '"pinned":false', '/pinned must be equal to constant'],
  ['traffic-index.jsonl', /,"bytes":\d+/, '', "/ must have required property 'bytes'"],
];
for (const [name, from, to, expected] of brokenLines) {
  test(`refuses ${name} where ${expected}`, () => {
    assertFailure(changedText(name, (text) => text.replace(from, to)), `${name}:1: ${expected}`);
  });
}

test('refuses what is not JSON, not UTF-8, or not there', () => {
  assertFailure(changedText('metadata.json', (text) => text.slice(0, -3)),
    'metadata.json: is not JSON');
  assertFailure(changed('process.json', (path) => writeFileSync(path, Buffer.from([0x22, 0xff,
    0x22]))), 'process.json: cannot be read as UTF-8');
  assertFailure(changed('manifest.json', (path) => rmSync(path)), 'manifest.json: is not there');
  assertFailure(changed('session.json', (path) => writeFileSync(path, '{')),
    'session.json: is not JSON');
});

function run(...reports) {
  return spawnSync(process.execPath, [validate, ...reports], { encoding: 'utf8' });
}

test('exits 0 for good reports, 1 for any bad one, 2 without a report', () => {
  const bad = changedDocument('metadata.json', (document) => { document.pid = 'none'; });
  assert.equal(run(join(directory, 'full'), join(directory, 'bare')).status, 0);
  const result = run(join(directory, 'full'), bad);
  assert.equal(result.status, 1);
  assert.equal(result.stdout, `${bad}: metadata.json: /pid must be integer\n`);
  assert.equal(run().status, 2);
  assert.equal(run(join(directory, 'nowhere')).status, 1);
});

test('checks a single artefact by its name', () => {
  const bad = changedDocument('runtime-metrics.json', (document) => { delete document.threads; });
  assert.equal(run(join(directory, 'full', 'runtime-metrics.json')).status, 0);
  assert.equal(run(join(bad, 'runtime-metrics.json')).status, 1);
});

function zipped(report) {
  const names = readdirSync(report).map((name) => join(report, name));
  execFileSync('python3', ['-m', 'zipfile', '-c', `${report}.zip`, ...names]);
  return `${report}.zip`;
}
const canZip = spawnSync('python3', ['-c', '']).status === 0 && spawnSync('unzip').status === 0;

test('reads a zip as it reads a directory', { skip: !canZip && 'needs python3 and unzip' }, () => {
  const bad = changedText('logs.jsonl', (text) => text.replace('4711', '"4711"'));
  assert.equal(run(zipped(join(directory, 'full'))).status, 0);
  const result = run(zipped(bad));
  assert.equal(result.status, 1);
  assert.equal(result.stdout, `${bad}.zip: logs.jsonl:1: /tid must be integer\n`);
  writeFileSync(join(directory, 'torn.zip'), readFileSync(`${bad}.zip`).subarray(0, 500));
  assert.equal(run(join(directory, 'torn.zip')).status, 1);
});

// Whoever reads a schema should not have to read our code as well.
function assertDescribed(schema, place) {
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    const refines = /\/(if|then|oneOf)(\/|$)/.test(place);
    assert.ok(typeof member === 'boolean' || member.description || refines,
      `${place}/${key} has no description`);
    assertDescribed(member, `${place}/${key}`);
  }
  if (schema.items) {
    assertDescribed(schema.items, `${place}/items`);
  }
  (schema.oneOf ?? []).forEach((one) => assertDescribed(one, one.description ? place
    : `${place}/oneOf`));
}

test('describes every property', () => {
  const files = readdirSync(schemas);
  assert.ok(files.length >= 8);
  for (const file of files) {
    assertDescribed(JSON.parse(readFileSync(join(schemas, file), 'utf8')), file);
  }
});
