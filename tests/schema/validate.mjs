#!/usr/bin/env node
// Checks reports against the published shapes in docs/schema:
//
//   BUGPACK_SCHEMA_NODE_MODULES=DIR/node_modules validate.mjs REPORT…
//
// A REPORT is a zip, or a directory that one was unpacked into; or a single artefact under its own
// name. Every known artefact that is there is validated, every other *.json must at least be JSON.
// Prints one line for each failure. Exits 0 when there is none, 1 otherwise, 2 for wrong usage, 77
// when the validator is not installed.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const schemaDirectory = fileURLToPath(new URL('../../docs/schema/', import.meta.url));

// Which schema an artefact follows; in a .jsonl every line does.
const known = {
  'metadata.json': 'metadata',
  'crash.json': 'crash',
  'runtime-metrics.json': 'runtime-metrics',
  'process.json': 'process',
  'threads.json': 'threads',
  'files.json': 'files',
  'system.json': 'system',
  'heap-state.json': 'heap-state',
  'stacks.json': 'stacks',
  'manifest.json': 'manifest',
  'logs.jsonl': 'log-record',
  'metrics-history.jsonl': 'metrics-history',
  'notifications.json': 'notifications',
  'traffic-index.jsonl': 'traffic-index',
  'disconnect-cause.json': 'disconnect-cause',
  'hang.json': 'hang',
  'thread-heap.json': 'thread-heap',
  'host-threads.json': 'host-threads',
  'diff.json': 'diff', // no artefact: what bugpack diff --json prints
  'show.json': 'show', // likewise
  'index.jsonl': 'index', // likewise
  'log-lines.jsonl': 'log-line', // likewise
  'events.jsonl': 'event', // likewise
  'capture.json': 'capture', // likewise
  'redact-list.json': 'redact-list', // likewise
};
const summary = /-pedantic-summary-[0-9TZ-]+\.json$/;
const required = ['metadata.json', 'manifest.json'];

// What unzip would take for a pattern or an option is not asked for.
const plainName = /^[A-Za-z0-9_.][A-Za-z0-9_./-]*$/;
const outputLimit = { maxBuffer: 1 << 30 };

// Compiles a schema when it is asked for, and as it is: it is used a few times, and compiling takes most of the time.
export function loadValidators(nodeModules) {
  const require = createRequire(join(nodeModules, 'index.js'));
  const Ajv = require('ajv/dist/2020').default;
  const ajv = new Ajv({ strict: true, allowUnionTypes: true, allErrors: true, code: { optimize: false } });
  require('ajv-formats').default(ajv);
  const validators = {};
  for (const file of readdirSync(schemaDirectory).filter((name) => name.endsWith('.schema.json'))) {
    let compiled;
    Object.defineProperty(validators, file.replace('.schema.json', ''), {
      enumerable: true,
      get: () => (compiled ??= ajv.compile(JSON.parse(readFileSync(join(schemaDirectory, file), 'utf8')))),
    });
  }
  return validators;
}

function openReport(path) {
  if (statSync(path).isDirectory()) {
    const names = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isFile());
    return {
      required,
      names: names.map((entry) => entry.name),
      read: (name) => readFileSync(join(path, name)),
    };
  }
  if (/\.jsonl?$/.test(path)) {
    return { required: [], names: [basename(path)], read: () => readFileSync(path) };
  }
  const listing = execFileSync('unzip', ['-Z1', path], { encoding: 'utf8', ...outputLimit });
  return {
    required,
    names: listing.split('\n').filter((name) => plainName.test(name)),
    read: (name) => execFileSync('unzip', ['-p', path, name], outputLimit),
  };
}

function parse(text, failures, place) {
  try {
    return JSON.parse(text);
  } catch (error) {
    failures.push(`${place}: is not JSON: ${error.message}`);
    return undefined;
  }
}

function checkDocument(text, validator, failures, place) {
  const document = parse(text, failures, place);
  if (document === undefined || validator === undefined || validator(document)) {
    return document;
  }
  for (const error of validator.errors) {
    failures.push(`${place}: ${error.instancePath || '/'} ${error.message}`);
  }
  return document;
}

function checkLines(text, validator, failures, name) {
  const lines = text.split('\n');
  if (lines.pop() !== '') {
    failures.push(`${name}: does not end with a newline`);
  }
  lines.forEach((line, index) => checkDocument(line, validator, failures, `${name}:${index + 1}`));
}

// All that is wrong with one report, a sentence each.
export function checkReport(path, validators) {
  const failures = [];
  const documents = {};
  const report = openReport(path);
  for (const name of report.required.filter((each) => !report.names.includes(each))) {
    failures.push(`${name}: is not there`);
  }
  for (const name of report.names.filter((each) => /\.jsonl?$/.test(each))) {
    let text;
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(report.read(name));
    } catch (error) {
      failures.push(`${name}: cannot be read as UTF-8: ${error.message}`);
      continue;
    }
    const plain = name.replace(/^processes\/[^/]+\//, '');
    const validator = validators[known[plain] ?? (summary.test(name) && 'pedantic-summary')];
    if (name.endsWith('.jsonl')) {
      checkLines(text, validator, failures, name);
    } else {
      documents[name] = checkDocument(text, validator, failures, name);
    }
  }
  const [metadata, manifest] = required.map((name) => documents[name]);
  if (metadata && manifest && metadata.report_id !== manifest.report_id) {
    failures.push('manifest.json: /report_id is not that of metadata.json');
  }
  return failures;
}

function main(reports) {
  const nodeModules = process.env.BUGPACK_SCHEMA_NODE_MODULES ?? '';
  if (reports.length === 0) {
    console.error('usage: validate.mjs REPORT…');
    return 2;
  }
  if (!existsSync(join(nodeModules, 'ajv'))) {
    console.error('skipped: the validator is not installed; tests/schema/install does it');
    return 77;
  }
  const validators = loadValidators(nodeModules);
  let failed = false;
  for (const path of reports) {
    let failures;
    try {
      failures = checkReport(path, validators);
    } catch (error) {
      failures = [`cannot be opened: ${error.message.split('\n')[0]}`];
    }
    failures.forEach((failure) => console.log(`${path}: ${failure}`));
    failed = failed || failures.length > 0;
  }
  return failed ? 1 : 0;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = main(process.argv.slice(2));
}
