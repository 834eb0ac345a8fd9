#!/usr/bin/env node
// Loads index.jsonl and then new.jsonl of the current directory into DuckDB and into two ClickHouse
// servers, by the files in docs/fleet, and compares what the queries say with answers.json.

import { deepStrictEqual as expectSame, match, ok, strictEqual } from 'node:assert';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(join(process.env.BUGPACK_SCHEMA_NODE_MODULES, 'index.js'));
const { DuckDBInstance } = require('@duckdb/node-api');
const read = (file) => readFileSync(fileURLToPath(new URL(`../../docs/fleet/${file}`, import.meta.url)), 'utf8');
const queries = ['new_gaps', 'deadlock_builds', 'busy_threads', 'critical_machines', 'diagnoses',
  'grown_processes', 'new_signatures', 'signature_machines'];

// Numbers may come as texts, and times with a T or a blank and without zeros at their end.
function normalize(value) {
  const time = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?Z?$/.exec(value);
  if (time) return `${time[1]}T${time[2]}${(time[3] ?? '.').padEnd(7, '0')}Z`;
  return /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

class DuckDb {
  async open() {
    this.connection = await (await DuckDBInstance.create(':memory:')).connect();
  }
  async ask(sql) {
    const reader = await this.connection.runAndReadAll(sql);
    return { names: reader.columnNames(), rows: reader.getRowsJson() };
  }
  load = () => this.ask(read('duckdb/load.sql'));
  add = () => this.ask(read('duckdb/add.sql'));
  query = (name) => this.ask(read(`duckdb/${name}.sql`));
}

async function freePorts(count) {
  const servers = await Promise.all(Array.from({ length: count }, () => new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => resolve(server));
  })));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

const users = `<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password/>
  <networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>`;

// Two shards: processes that end with this one.
class ClickHouse {
  servers = [];

  async open() {
    const ports = await freePorts(4);
    this.http = [ports[0], ports[2]];
    const shards = [ports[1], ports[3]].map((port) =>
      `<shard><replica><host>127.0.0.1</host><port>${port}</port></replica></shard>`);
    for (const number of [0, 1]) {
      const directory = join(process.cwd(), `shard${number}-${ports[0]}`);
      mkdirSync(directory);
      writeFileSync(join(directory, 'users.xml'), users);
      writeFileSync(join(directory, 'config.xml'), `<yandex>
        <logger><level>warning</level><log>${directory}/log</log><errorlog>${directory}/log</errorlog></logger>
        <listen_host>127.0.0.1</listen_host><http_port>${this.http[number]}</http_port>
        <tcp_port>${ports[2 * number + 1]}</tcp_port><path>${directory}/data/</path>
        <tmp_path>${directory}/tmp/</tmp_path><users_config>users.xml</users_config><timezone>UTC</timezone>
        <default_profile>default</default_profile><default_database>default</default_database>
        <mark_cache_size>16777216</mark_cache_size><macros><shard>1</shard><replica>a</replica></macros>
        <remote_servers><fleet>${shards.join('')}</fleet></remote_servers></yandex>`);
      const server = spawn('setpriv', ['--pdeathsig', 'KILL', 'clickhouse-server',
        `--config-file=${directory}/config.xml`], { cwd: directory, stdio: 'ignore' });
      server.ended = new Promise((resolve) => server.on('exit', resolve));
      this.servers.push(server);
    }
    for (const number of [0, 1]) {
      while (!(await this.ask('SELECT 1', number).then(() => true, () => false))) {
        if (this.servers[number].exitCode !== null) return false; // somebody took its port
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    for (const number of [0, 1]) {
      await this.ask(read('clickhouse/shard.sql'), number);
      await this.ask(read('clickhouse/distributed.sql'), number);
    }
    return true;
  }
  async close() {
    this.servers.forEach((server) => server.kill('SIGKILL'));
    await Promise.all(this.servers.splice(0).map((server) => server.ended));
  }
  async ask(body, number = 0, parameters = '') {
    const reply = await fetch(`http://127.0.0.1:${this.http[number]}/?${parameters}`, { method: 'POST', body });
    const text = await reply.text();
    if (!reply.ok) throw new Error(text);
    return text;
  }
  insert(file) {
    return this.ask(readFileSync(file), 0, new URLSearchParams({ insert_distributed_sync: 1,
      input_format_skip_unknown_fields: 1, query: 'INSERT INTO reports FORMAT JSONEachRow' }));
  }
  load = () => this.insert('index.jsonl');
  add = () => this.insert('new.jsonl');
  async select(sql, number) {
    const answer = JSON.parse(await this.ask(`${sql} FORMAT JSONCompact`, number));
    return { names: answer.meta.map((column) => column.name), rows: answer.data };
  }
  query = (name) => this.select(read(`clickhouse/${name}.sql`), 1);
}

async function answer(engine, name) {
  const { names, rows } = await engine.query(name);
  return [names, ...rows.map((row) => row.map(normalize))];
}

const duckdb = new DuckDb(), clickhouse = new ClickHouse();
try {
  await duckdb.open();
  for (let tries = 1; !(await clickhouse.open()); tries++) {
    ok(tries < 5, 'ClickHouse does not start');
    await clickhouse.close();
  }

  await duckdb.load();
  await clickhouse.load();
  for (const name of queries) {
    expectSame(await answer(clickhouse, name), await answer(duckdb, name), `${name}, of the index`);
  }

  // A second time nothing is added.
  for (const engine of [duckdb, duckdb, clickhouse, clickhouse]) await engine.add();
  const wanted = JSON.parse(readFileSync('answers.json', 'utf8'));
  for (const name of queries) {
    const [names, ...rows] = await answer(duckdb, name);
    // Of diagnoses and signatures the maker knows those that it planted.
    const planted = { diagnoses: ([id]) => id === 'deadlock', new_signatures: ([signature]) => /^deadlock/.test(signature),
      signature_machines: ([, signature]) => /^deadlock/.test(signature) };
    const known = name in planted ? rows.filter(planted[name]) : rows;
    expectSame(known, wanted[name], `${name} in DuckDB`);
    expectSame(await answer(clickhouse, name), [names, ...rows], `${name} in ClickHouse`);
    console.log([name, names.join(' | '), ...rows.map((row) => row.join(' | '))].join('\n'));
  }
  for (const shard of [0, 1]) {
    const count = Number((await clickhouse.select('SELECT count() FROM reports_shard FINAL', shard)).rows[0][0]);
    ok(count > 1700 && count < 2300, `a shard has ${count} reports`);
  }

  // The percentiles of 1 to n are the same, also where n is a multiple of 20.
  const expected = Array.from({ length: 100 }, (_, i) => [i + 1, Math.ceil((95 * (i + 1)) / 100)]);
  for (const { rows } of [
    await duckdb.ask(`SELECT n, quantile_disc(i, 0.95) FROM range(1, 101) a(n), range(1, 101) b(i)
                      WHERE i <= n GROUP BY n ORDER BY n`),
    await clickhouse.select(`SELECT n, -quantileExact(0.05)(-i) FROM (
        SELECT number + 1 AS n, arrayJoin(range(n)) + 1 AS i FROM numbers(100)) GROUP BY n ORDER BY n`)]) {
    expectSame(rows.map((row) => row.map(normalize)), expected, 'the percentiles');
  }

  // There is no ZooKeeper here, but all that comes before it is right.
  strictEqual(read('clickhouse/replicated.sql').replace(/ Replicated(\w+)\(.*\)/, ' $1'), read('clickhouse/shard.sql'));
  const refusal = await clickhouse.ask(read('clickhouse/replicated.sql').replace('reports_shard', 'other'))
    .then(() => '', (error) => error.message);
  match(refusal, /without ZooKeeper/);
} catch (error) {
  console.log(error.message);
  process.exitCode = 1;
} finally {
  await clickhouse.close();
}
